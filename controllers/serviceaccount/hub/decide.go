// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// State is everything that a decision about one ManagedServiceAccount depends on.
type State struct {
	Now time.Time
	// Asked is not changed.
	Asked *authenticationv1beta1.ManagedServiceAccount
	// Cluster is true when the namespace is that of a ManagedCluster, and AddOn when the cluster
	// has the add-on.
	Cluster, AddOn bool
	// Problem is why the agent has no rights, or "".
	Problem string
	// Lifetime is true when spec.ttlSecondsAfterCreation is honoured.
	Lifetime bool
}

// Decide is pure.
func Decide(s State) reconcile.Plan {
	if s.Asked.DeletionTimestamp != nil {
		return reconcile.Plan{}
	}
	var next reconcile.Result
	if end, limited := s.end(); limited && s.Lifetime {
		if left := end.Sub(s.Now); left > 0 {
			next.RequeueAfter = left
		} else {
			return reconcile.Plan{Writes: []reconcile.Write{reconcile.Remove{Target: reconcile.Target{
				Resource: asked, Namespace: s.Asked.Namespace, Name: s.Asked.Name, UID: s.Asked.UID, Version: s.Asked.ResourceVersion,
			}}}}
		}
	}
	out := s.Asked.DeepCopy()
	s.setServed(out)
	reported := apimeta.IsStatusConditionTrue(out.Status.Conditions, authenticationv1beta1.ConditionTokenReported)
	if expires := out.Status.ExpirationTimestamp; expires != nil && reported {
		if left := expires.Sub(s.Now); left > 0 {
			next = next.Sooner(reconcile.Result{RequeueAfter: left})
		} else {
			s.set(out, metav1.Condition{
				Type: authenticationv1beta1.ConditionTokenReported, Reason: authenticationv1beta1.ReasonTokenExpired,
				Message: "The token has ended, and the agent of the cluster has not renewed it; see whether the cluster and the add-on are available",
			})
		}
	}
	return reconcile.Plan{Object: out, RequeueAfter: next.RequeueAfter}
}

// end returns when the ManagedServiceAccount is to be deleted, if it has a limited life.
func (s State) end() (end time.Time, limited bool) {
	ttl := s.Asked.Spec.TTLSecondsAfterCreation
	if ttl == nil {
		return end, false
	}
	return s.Asked.CreationTimestamp.Add(time.Duration(*ttl) * time.Second), true
}

// setServed says why no agent serves it, or that a part is not honoured.
func (s State) setServed(out *authenticationv1beta1.ManagedServiceAccount) {
	c := metav1.Condition{Type: authenticationv1beta1.ConditionServed}
	_, limited := s.end()
	switch {
	case !s.Cluster:
		c.Reason = authenticationv1beta1.ReasonNoManagedCluster
		c.Message = fmt.Sprintf("There is no ManagedCluster %s; create the ManagedServiceAccount in the namespace of a cluster", out.Namespace)
	case !s.AddOn:
		c.Reason = authenticationv1beta1.ReasonAddOnMissing
		c.Message = fmt.Sprintf("The cluster does not have the add-on, so no token is requested or renewed; kubectl ocm addon enable %s -c %s",
			authenticationv1beta1.AddOnName, out.Namespace)
	case s.Problem != "":
		c.Reason, c.Message = authenticationv1beta1.ReasonRightsMissing, "The agent of the cluster has no rights about the Secret: "+s.Problem
	case limited && !s.Lifetime:
		c.Reason = authenticationv1beta1.ReasonLifetimeNotEnabled
		c.Message = "spec.ttlSecondsAfterCreation: is not honoured, because the feature gate ManagedServiceAccountEphemeralIdentity is off"
	default:
		apimeta.RemoveStatusCondition(&out.Status.Conditions, c.Type)
		return
	}
	s.set(out, c)
}

// set sets a condition to False.
func (s State) set(out *authenticationv1beta1.ManagedServiceAccount, c metav1.Condition) {
	c.Status, c.ObservedGeneration = metav1.ConditionFalse, out.Generation
	reconcile.SetCondition(&out.Status.Conditions, c, s.Now)
}
