// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Bounds of what is asked of a cluster: Kubernetes grants no shorter life, and none of more
// seconds than 32 bits count.
const (
	minValidity = 10 * time.Minute
	maxValidity = (1 << 32) * time.Second
)

// unreadAfter is how long the hub may take to let the agent read the Secret of a new
// ManagedServiceAccount before that is reported.
const unreadAfter = 10 * time.Second

// longest bounds a wait, because the clock of a machine can be set.
const longest = time.Hour

// Step is one thing to do next. The state is decided again once it is done.
type Step int

// Steps of a pass.
const (
	// Done means that nothing is left to do but to report Plan.Object.
	Done Step = iota
	// Remove deletes the account.
	Remove
	// Create creates the account.
	Create
	// Review asks the cluster about the token in the Secret.
	Review
	// Read reads account and Secret from their API servers: a cache may be late, and a token
	// that was just written must not be requested twice.
	Read
	// Request requests a token and writes it to the Secret.
	Request
	// Repair writes the Secret without a new token.
	Repair
)

// Plan is what a decision wants done.
type Plan struct {
	Step Step
	// Why says why a token is requested.
	Why string
	// Object is the ManagedServiceAccount with its new status, if Step is Done and somebody asks
	// for the account.
	Object *authenticationv1beta1.ManagedServiceAccount
	// RequeueAfter is when time itself changes something; zero waits for an event.
	RequeueAfter time.Duration
}

// errNameTaken is the failure of a Secret that belongs to others.
var errNameTaken = errors.New("a Secret of this name exists that was not made for a ManagedServiceAccount; " +
	"delete the Secret, or choose another name for the ManagedServiceAccount")

// Decide is pure.
func Decide(s State) Plan {
	if s.Asked == nil || s.Asked.DeletionTimestamp != nil {
		if s.Account != nil && s.disposes() {
			return Plan{Step: Remove}
		}
		return Plan{}
	}
	if !s.Known {
		return s.waiting()
	}
	if s.Secret != nil && s.Secret.ours(s.Name) && s.Secret.Readable && s.Verdict == Unreviewed {
		return Plan{Step: Review}
	}
	if err := s.obstacle(); err != nil {
		return Plan{Object: s.failed(err)}
	}
	if s.Account == nil {
		return Plan{Step: Create}
	}
	if why := s.outdated(); why != "" {
		if !s.Fresh {
			return Plan{Step: Read, Why: why}
		}
		return Plan{Step: Request, Why: why}
	}
	if !s.Secret.complete(owner(s.Asked), s.CA) {
		return Plan{Step: Repair}
	}
	return Plan{Object: s.reported(), RequeueAfter: min(s.Secret.Token.RenewAt().Sub(s.clusterTime()), longest)}
}

// waiting returns what is done while the hub has not said whether the Secret exists. A new
// role takes a moment to count, which is no failure.
func (s State) waiting() Plan {
	if left := unreadAfter - s.Now.Sub(s.Asked.CreationTimestamp.Time); left > 0 || s.Unread == nil {
		return Plan{RequeueAfter: max(left, 0)}
	}
	return Plan{Object: s.failed(fmt.Errorf("reading the Secret on the hub: %w", s.Unread))}
}

// clusterTime returns the time by the clock of the cluster.
func (s State) clusterTime() time.Time { return s.Now.Add(s.Ahead) }

// obstacle returns what keeps the agent from requesting a token, until a person changes it.
func (s State) obstacle() error {
	switch v := s.Asked.Spec.Rotation.Validity.Duration; {
	case v < minValidity || v > maxValidity:
		return fmt.Errorf("spec.rotation.validity: is %s; use from %s to %s", v, minValidity, maxValidity)
	case s.Secret != nil && !s.Secret.ours(s.Name):
		return errNameTaken
	case s.Account == nil || s.Account.Allowed || s.disposes() || s.proven():
		return nil
	case s.Account.Created:
		return fmt.Errorf("ServiceAccount %s/%s of the cluster was created for another hub; choose another name, "+
			"or remove its annotation %s if that hub is gone",
			s.Namespace, s.Name, authenticationv1beta1.AnnotationHub)
	}
	return fmt.Errorf("ServiceAccount %s/%s of the cluster was not created for a ManagedServiceAccount; choose another name, "+
		"or let the hub have its tokens: kubectl annotate serviceaccount -n %[1]s %[2]s %[3]s=true",
		s.Namespace, s.Name, authenticationv1beta1.AnnotationTokensAllowed)
}

// outdated returns why a new token is needed, or "".
func (s State) outdated() string {
	switch t := s.Secret; {
	case t == nil:
		return "there is no Secret"
	case !t.Readable:
		return "the Secret holds no token"
	case t.Token.Subject != s.subject():
		return "the token is that of another account"
	case t.Token.Account != "" && t.Token.Account != s.Account.UID:
		return "the account was created again"
	case s.Verdict == Refused:
		return "the cluster refuses the token"
	case !s.clusterTime().Before(t.Token.RenewAt()):
		return "most of the life of the token is over"
	}
	return ""
}

// failed returns the ManagedServiceAccount with the report that there is no new token. What
// it says of the previous one stays.
func (s State) failed(err error) *authenticationv1beta1.ManagedServiceAccount {
	out := s.Asked.DeepCopy()
	s.set(out, metav1.Condition{
		Type: authenticationv1beta1.ConditionTokenReported, Status: metav1.ConditionFalse,
		Reason: authenticationv1beta1.ReasonTokenReportFailed, Message: err.Error(),
	})
	if errors.Is(err, errNameTaken) {
		s.set(out, metav1.Condition{
			Type: authenticationv1beta1.ConditionSecretCreated, Status: metav1.ConditionFalse,
			Reason: authenticationv1beta1.ReasonSecretNameTaken, Message: err.Error(),
		})
	}
	return out
}

// reported returns the ManagedServiceAccount with the report of the token in the Secret.
func (s State) reported() *authenticationv1beta1.ManagedServiceAccount {
	out, t := s.Asked.DeepCopy(), s.Secret.Token
	expires := metav1.NewTime(t.Expires)
	out.Status.ExpirationTimestamp = &expires
	out.Status.TokenSecretRef = &authenticationv1beta1.SecretRef{Name: s.Name, LastRefreshTimestamp: metav1.NewTime(t.Issued)}
	s.set(out, metav1.Condition{
		Type: authenticationv1beta1.ConditionSecretCreated, Status: metav1.ConditionTrue, Reason: authenticationv1beta1.ReasonSecretCreated,
		Message: "Secret " + s.Name + " holds the token",
	})
	message := "The token is renewed before it ends"
	if !s.Asked.Spec.Rotation.Enabled {
		message += "; spec.rotation.enabled: false has no effect"
	}
	s.set(out, metav1.Condition{
		Type: authenticationv1beta1.ConditionTokenReported, Status: metav1.ConditionTrue, Reason: authenticationv1beta1.ReasonTokenReported, Message: message,
	})
	return out
}

// set sets a condition.
func (s State) set(out *authenticationv1beta1.ManagedServiceAccount, c metav1.Condition) {
	c.ObservedGeneration = out.Generation
	reconcile.SetCondition(&out.Status.Conditions, c, s.Now)
}
