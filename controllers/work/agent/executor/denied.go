// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// RetryEvery is how long to wait before a denied object is retried if no change of rights
// is seen earlier.
const RetryEvery = time.Minute

// groupRBAC is the API group of roles and bindings.
const groupRBAC = "rbac.authorization.k8s.io"

// DeniedError means that the executor may not do what the work requires. It is no failure
// of the agent: it goes away when rights are granted.
type DeniedError struct {
	account Account
	object  Object
	// missing are the verbs that the executor lacks; none if the API server refused what
	// the reviews allowed.
	missing []string
	// escalates is set when the object would grant rights that the executor does
	// not have.
	escalates bool
}

// Error returns the text that the API defines, and what to do about it.
func (e *DeniedError) Error() string {
	cause := ""
	if e.escalates {
		cause = ", error: permission escalation"
	}
	o := e.object
	return fmt.Sprintf("not allowed to apply the resource %s %s, %s %s%s, will try again in %s; %s",
		o.Resource.Group, o.Resource.Resource, o.Namespace, o.Name, cause, RetryEvery, e.hint())
}

func (e *DeniedError) hint() string {
	switch {
	case e.escalates:
		return fmt.Sprintf(
			"ServiceAccount %s may grant only rights that it has itself; give it those rights, or the verb escalate on roles and bind on what bindings refer to",
			e.account,
		)
	case len(e.missing) == 0:
		return fmt.Sprintf("the API server refused ServiceAccount %s although it has the rights; check its authorizers", e.account)
	}
	return fmt.Sprintf("ServiceAccount %s lacks %s; grant it on the managed cluster: %s", e.account, strings.Join(e.missing, ", "), e.grant())
}

// grant returns the command that grants the missing verbs.
func (e *DeniedError) grant() string {
	role := e.account.Name + "-" + e.object.Resource.Resource
	kind, in := "clusterrole", ""
	if e.object.Namespace != "" {
		kind, in = "role", " -n "+e.object.Namespace
	}
	return fmt.Sprintf("kubectl create %s %s --verb=%s --resource=%s%s && kubectl create %sbinding %s --%s=%s --serviceaccount=%s:%s%s",
		kind, role, strings.Join(e.missing, ","), e.object.Resource.GroupResource(), in,
		kind, role, kind, role, e.account.Namespace, e.account.Name, in)
}

// Refused turns an API server's refusal of a write, because of the executor's rights,
// into a DeniedError; it returns other errors unchanged.
func Refused(err error, a Account, o Object) error {
	if a.IsAgent() || !apierrors.IsForbidden(err) {
		return err
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "cannot impersonate resource"):
		// The agent itself lacks a right.
		return err
	case o.grants() && escalates(text):
		return &DeniedError{account: a, object: o, escalates: true}
	case strings.Contains(text, `is forbidden: User "`+a.User()+`" `):
		return &DeniedError{account: a, object: o}
	}
	return err
}

// escalates recognizes the texts by which API servers refuse roles and bindings. Other
// refusals, by a quota or of a terminating namespace, have other causes.
func escalates(text string) bool {
	return strings.Contains(text, "attempting to grant RBAC permissions not currently held") ||
		strings.Contains(text, "must have cluster-admin privileges to use an aggregationRule")
}
