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

// Kind is the kind of failure of an Error. The plugin's exit codes follow it.
type Kind int

// The kinds of failure.
const (
	// Failed: the API refused the request or could not be reached, or something does not
	// exist.
	Failed Kind = iota
	// Usage: the request itself is wrong, whatever is on the clusters.
	Usage
	// Timeout: a wait ended before its condition held. Nothing is undone.
	Timeout
	// Partial: some clusters are done and some failed.
	Partial
	// Refused: it is possible but would do harm; the message names the override.
	Refused
)

// Error is a failure that a user can act on. Message, Cause and Fix are one line each and
// never contain a token or key.
type Error struct {
	// Kind decides the exit code.
	Kind Kind
	// Message says what went wrong, in lower case.
	Message string
	// Cause says why, as far as is known.
	Cause string
	// Fix is what helps; nil when unknown.
	Fix Fix
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

// Misuse returns an Error of kind Usage.
func Misuse(message, cause string, fix Fix) *Error {
	return &Error{Kind: Usage, Message: message, Cause: cause, Fix: fix}
}

// Refuse returns an Error of kind Refused.
func Refuse(message, cause string, fix Fix) *Error {
	return &Error{Kind: Refused, Message: message, Cause: cause, Fix: fix}
}

// Fail returns an Error of kind Failed that wraps err.
func Fail(message string, err error, fix Fix) *Error {
	e := &Error{Kind: Failed, Message: message, Fix: fix, Err: err}
	if err != nil {
		e.Cause = OneLine(err.Error())
	}
	return e
}

// tooLate is how client-go's limiter of requests refuses to begin one that the deadline would end. The error
// has no type.
const tooLate = "would exceed context deadline"

// Explain turns an API error about subject into an Error, with a fix for the common reasons.
// An err that already is an Error is returned unchanged.
func Explain(subject string, c *Cluster, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	switch {
	case apierrors.IsUnauthorized(err):
		return Fail(subject, fmt.Errorf("the API server of %s does not know this user: %w", c, err),
			Advice("renew the credentials of "+c.Where()+", for example by logging in again"))
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "is terminating"):
		return Fail(subject, err, AwaitNamespaces.On(c))
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "admission webhook"):
		return Fail(subject, err, nil)
	case apierrors.IsForbidden(err):
		return Fail(subject, err, Advice("use a user with the rights of cluster-admin on "+c.Where()))
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), tooLate):
		return &Error{Kind: Timeout, Message: "timed out " + subject, Cause: OneLine(err.Error()), Fix: LongerTimeout.With(),
			Err: err}
	case Unanswered(err):
		return unreachable(c, err)
	case IsNoKind(err):
		return Fail(subject, fmt.Errorf("%s does not serve this kind: %w", c, err), ChooseHub.On(c))
	}
	return Fail(subject, err, nil)
}

// Unanswered reports whether no API server answered at all.
func Unanswered(err error) bool {
	var status apierrors.APIStatus
	var network *url.Error
	return !errors.As(err, &status) && errors.As(err, &network)
}

// IsNoKind distinguishes the answer "no such resource type" from "no such object".
func IsNoKind(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || strings.Contains(err.Error(), "could not find the requested resource")
}

// ErrNotHub is wrapped by every error which says that a cluster is not a hub.
var ErrNotHub = errors.New("not a hub")

// NotHub returns the error for a cluster that is not a hub.
func NotHub(c *Cluster, cause string) *Error {
	return &Error{Message: c.String() + " is not a hub", Cause: cause, Fix: ChooseHub.On(c), Err: ErrNotHub}
}
