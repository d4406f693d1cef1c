// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// evictionGrace is how long a managed cluster may stay out of reach before the Klusterlet is
	// deleted without it.
	evictionGrace = 5 * time.Minute
	// managedCheck is how often to look whether a managed cluster can be reached again.
	managedCheck = 10 * time.Second
)

// managedHolder returns another Klusterlet to whose agent the namespace on the managed cluster
// belongs; empty if it is free.
func (s State) managedHolder() string {
	if n := s.Managed.Namespaces[s.Klusterlet.ManagedNamespace()]; n.Klusterlet != s.Klusterlet.Name {
		return n.Klusterlet
	}
	return ""
}

// prepare sets ReadyToApply of a hosted agent. It returns true when the pass ends with it: the
// finalizer comes before what it protects.
func (s State) prepare(next *operatorv1.Klusterlet, p *Plan) bool {
	if s.Managed.Problem == "" {
		s.setReady(next, "The managed cluster can be changed with Secret "+operatorv1.SecretExternalManagedKubeconfig)
		if slices.Contains(next.Finalizers, operatorv1.FinalizerKlusterletHosted) {
			return false
		}
		next.Finalizers = append(next.Finalizers, operatorv1.FinalizerKlusterletHosted)
		p.Object = next
		return true
	}
	s.setReady(next, "")
	p.RequeueAfter = managedCheck
	if s.Namespaces[s.agentNamespace()].Klusterlet != s.Klusterlet.Name {
		// It is for the Secret. One that exists without it was not made for this agent.
		p.Writes = append(p.Writes, reconcile.Create{Object: s.namespaceNamed(s.agentNamespace()), Lenient: true})
	}
	return false
}

// setReady sets ReadyToApply: True with a message, or else to the problem with the managed cluster.
func (s State) setReady(next *operatorv1.Klusterlet, message string) {
	if message != "" {
		s.setCondition(next, operatorv1.ConditionReadyToApply, metav1.ConditionTrue, operatorv1.ReasonKlusterletPrepared, message)
		return
	}
	s.setCondition(next, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, operatorv1.ReasonKlusterletPrepareFailed, s.Managed.Problem)
}

// installHosted adds the stages of a hosted agent: its managed cluster first, then the tokens for
// it, then what runs here.
func (s State) installHosted(p *Plan, management []reconcile.Write) {
	name := s.Klusterlet.ManagedNamespace()
	managed := append([]reconcile.Write{
		reconcile.Apply{Object: s.namespaceNamed(name), LiveVersion: s.Managed.Namespaces[name].Version},
	}, s.Managed.Rights...)
	due, next := s.tokens()
	p.RequeueAfter = next
	p.Stages = []Stage{
		{Writes: s.Parts.Writes(), Managed: true, Reason: operatorv1.ReasonCRDApplyFailed},
		{Writes: append(managed, s.managedPullSecret()...), Managed: true, Reason: operatorv1.ReasonManagedClusterResourceApplyFailed},
		{Writes: append([]reconcile.Write{s.namespace()}, s.Rights...), Reason: operatorv1.ReasonManagementClusterResourceApplyFailed},
		{tokens: due, Reason: operatorv1.ReasonManagedClusterResourceApplyFailed},
		{Writes: management, Reason: operatorv1.ReasonManagementClusterResourceApplyFailed},
	}
}

// managedPullSecret copies the image pull secret for add-ons on the managed cluster, and removes
// the copy when it is gone. One that somebody else made stays.
func (s State) managedPullSecret() []reconcile.Write {
	live := s.Managed.PullCopy
	switch at := (reconcile.Target{Resource: request.Secrets, Namespace: operatorv1.NamespaceAgentAddOn, Name: operatorv1.SecretImagePull}); {
	case s.PullSource != nil && live == nil && s.NoAddOns:
	case s.PullSource != nil && live == nil:
		return []reconcile.Write{reconcile.Apply{Object: copyOf(*s.PullSource, at.Namespace, at.Name, s.Klusterlet.Name)}}
	case s.PullSource != nil && live.Owner == s.Klusterlet.Name:
		return []reconcile.Write{reconcile.Apply{Object: copyOf(*s.PullSource, at.Namespace, at.Name, live.Owner), LiveVersion: live.Version}}
	case s.PullSource == nil && live != nil && live.Owner == s.Klusterlet.Name:
		at.UID = live.UID
		return []reconcile.Write{reconcile.Remove{Target: at}}
	}
	return nil
}

// isGivenUp reports whether the managed cluster of a Klusterlet that is being deleted has been out
// of reach for too long; an administrator says so with an earlier time.
func (s State) isGivenUp() bool {
	at, err := time.Parse(time.RFC3339, s.Klusterlet.Annotations[operatorv1.AnnotationManagedResourcesEvictionTimestamp])
	return err == nil && !s.Now.Before(at.Add(evictionGrace))
}

// awaitManaged is the plan while the managed cluster cannot be cleaned up. The time runs while the
// cluster is out of reach, and not while the Secret is missing that leads there.
func (s State) awaitManaged(next *operatorv1.Klusterlet) Plan {
	const key = operatorv1.AnnotationManagedResourcesEvictionTimestamp
	if _, err := time.Parse(time.RFC3339, next.Annotations[key]); err != nil && !s.Managed.Absent {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, key, s.Now.UTC().Format(time.RFC3339))
	}
	hint := "It is left as it is once the annotation " + key + " is five minutes old"
	s.Managed.Problem = strings.Join([]string{s.Managed.Problem, "The agent is still to be removed from the managed cluster", hint}, ". ")
	s.setReady(next, "")
	return Plan{Plan: reconcile.Plan{Object: next, RequeueAfter: managedCheck}}
}

// leftEvent tells what stays on a managed cluster.
func (s State) leftEvent() reconcile.Event {
	return reconcile.Event{
		Type: "Warning", Reason: "ManagedClusterLeft", Once: true,
		Message: "The managed cluster could not be cleaned up, and keeps what has the label " + operatorv1.LabelCreatedByKlusterlet + "=" +
			s.Klusterlet.Name + ": " + s.Managed.Problem,
	}
}
