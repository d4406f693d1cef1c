// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Kind says what sort of failure an Error is. The plugin's exit codes follow it.
type Kind int

// The kinds of failure.
const (
	// Failed: the API refused or could not be reached, or something is not there.
	Failed Kind = iota
	// Usage: the request itself is wrong, whatever the clusters hold.
	Usage
	// Timeout: a wait ended before its condition held. Nothing is undone.
	Timeout
	// Partial: some clusters are done and some failed.
	Partial
	// Refused: it could be done but would harm; the message names the override.
	Refused
)

// Error is a failure that a person can act on. Message, Cause and Fix are one
// line each and never hold a token or key.
type Error struct {
	// Kind decides the exit code.
	Kind Kind
	// Message says what went wrong, in lower case.
	Message string
	// Cause says why, as far as it is known.
	Cause string
	// Fix is a command or an act that helps; commands start with "kubectl ocm".
	Fix string
	// Since is how long the blocking condition has held; zero when unknown.
	Since time.Duration
	// LastEvent is how long ago the watched objects changed; zero when unknown.
	LastEvent time.Duration
	// Err is the underlying error, for errors.Is and errors.As. It may be nil.
	Err error
}

// Error returns the message, with the cause when there is one.
func (e *Error) Error() string {
	if e.Cause == "" {
		return e.Message
	}
	return e.Message + ": " + e.Cause
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// usage makes an Error of kind Usage.
func usage(message, cause, fix string) *Error {
	return &Error{Kind: Usage, Message: message, Cause: cause, Fix: fix}
}

// refused makes an Error of kind Refused.
func refused(message, cause, fix string) *Error {
	return &Error{Kind: Refused, Message: message, Cause: cause, Fix: fix}
}

// failed makes an Error of kind Failed around err.
func failed(message string, err error, fix string) *Error {
	e := &Error{Kind: Failed, Message: message, Fix: fix, Err: err}
	if err != nil {
		e.Cause = oneLine(err.Error())
	}
	return e
}

// explain turns an API error about subject into an Error with a fix where the
// reason is one that a person meets often. An error that is one already is
// returned as it is.
func explain(subject string, c *Cluster, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	switch {
	case apierrors.IsUnauthorized(err):
		return failed(subject, fmt.Errorf("the API server of %s does not know this user: %w", c, err),
			"renew the credentials of "+c.where()+", for example by logging in again")
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "is terminating"):
		return failed(subject, err, "run the same command again when the namespace is gone: kubectl get namespaces"+c.flag())
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "admission webhook"):
		return failed(subject, err, "")
	case apierrors.IsForbidden(err):
		return failed(subject, err, "use a user with the rights of cluster-admin on "+c.where())
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: Timeout, Message: "timed out " + subject, Cause: oneLine(err.Error()), Fix: "run the same command again with a longer --timeout", Err: err}
	case unanswered(err):
		return unreachable(c, err)
	case isNoKind(err):
		return failed(subject, fmt.Errorf("%s does not serve this kind: %w", c, err), c.notHubFix())
	}
	return failed(subject, err, "")
}

// unanswered tells that no API server answered at all.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	var network *url.Error
	return !errors.As(err, &status) && errors.As(err, &network)
}

// isNoKind tells the answer "no such resource type" from "no such object".
func isNoKind(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || strings.Contains(err.Error(), "could not find the requested resource")
}

// many counts things: "1 work", "2 works".
func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// areMany counts things: "1 work is", "2 works are".
func areMany(n int, what string) string {
	if n == 1 {
		return many(n, what) + " is"
	}
	return many(n, what) + " are"
}

// ErrNotHub is in every error that says that a cluster is not a hub.
var ErrNotHub = errors.New("not a hub")

// notHub makes the error for a cluster that is not a hub.
func notHub(c *Cluster, cause string) *Error {
	return &Error{Message: c.String() + " is not a hub", Cause: cause, Fix: c.notHubFix(), Err: ErrNotHub}
}

// oneLine folds an error text into one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// asError finds the Error in err.
func asError(err error, e **Error) bool { return errors.As(err, e) }
