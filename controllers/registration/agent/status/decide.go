// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// patience is how long the API server must fail before the failure is reported.
	patience = 20 * time.Second
	// statusPrefix begins the message about an unhealthy API server; the rest differs between
	// answers.
	statusPrefix = "The kube-apiserver is not ok, status code: %d, "
)

// State is the input of a decision.
type State struct {
	Now     time.Time
	Cluster *clusterv1.ManagedCluster
	Health  Health
	Nodes   []Node
	// NodesKnown and ClaimsKnown are false until the collections have been listed; claims are
	// known when claims and properties are.
	NodesKnown, ClaimsKnown bool
	// Claims and Properties are the ClusterClaims and ClusterProperties that may be reported.
	Claims, Properties []Claim
	// MaxClaims and ReservedSuffixes are the settings of the same name.
	MaxClaims        int
	ReservedSuffixes []string
	// Credential is the state of the agent's certificate.
	Credential credential.Report
}

// Decide returns the status the ManagedCluster should have.
func Decide(s State) reconcile.Plan {
	if s.Cluster == nil || !apimeta.IsStatusConditionTrue(s.Cluster.Status.Conditions, clusterv1.ConditionHubAccepted) {
		return reconcile.Plan{}
	}
	next := s.Cluster.DeepCopy()
	p := reconcile.Plan{Object: next}
	s.setCondition(next, metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue,
		Reason: clusterv1.ReasonManagedClusterJoined, Message: "Managed cluster joined"})
	s.setRotated(next)
	s.setAvailable(next)
	if apimeta.IsStatusConditionTrue(next.Status.Conditions, clusterv1.ConditionAvailable) && s.Health.Healthy() {
		if s.Health.Version != "" {
			next.Status.Version.Kubernetes = s.Health.Version
		}
		s.setResources(next)
		s.setClaims(next)
	}
	p.Events = changeEvents(s.Cluster, next)
	return p
}

func (s State) setCondition(c *clusterv1.ManagedCluster, condition metav1.Condition) {
	condition.ObservedGeneration = c.Generation
	reconcile.SetCondition(&c.Status.Conditions, condition, s.Now)
}

// setRotated sets the condition for the client certificate.
func (s State) setRotated(c *clusterv1.ManagedCluster) {
	condition := metav1.Condition{Type: clusterv1.ConditionClusterCertificateRotated, Status: metav1.ConditionTrue,
		Reason: clusterv1.ReasonClientCertificateUpdated, Message: s.Credential.Message}
	switch {
	case s.Credential.Phase != credential.PhaseServing:
		return
	case s.Credential.Renewal == credential.PhaseDenied, s.Credential.Renewal == credential.PhaseThrottled:
		condition.Status, condition.Reason = metav1.ConditionFalse, clusterv1.ReasonClientCertificateUpdateFailed
	case s.Credential.Renewal != "":
		// A renewal in progress is not reported.
		return
	}
	s.setCondition(c, condition)
}

// setAvailable sets the condition for the health of the API server. A failure is only reported
// once it has lasted; until then the condition is left unchanged.
func (s State) setAvailable(c *clusterv1.ManagedCluster) {
	switch h := s.Health; {
	case h.Checked.IsZero():
	case h.Healthy():
		s.setCondition(c, metav1.Condition{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionTrue,
			Reason: clusterv1.ReasonManagedClusterAvailable, Message: "Managed cluster is available"})
	case h.Checked.Sub(h.FailingSince) >= patience:
		s.setCondition(c, metav1.Condition{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionFalse,
			Reason:  clusterv1.ReasonManagedClusterKubeAPIServerUnavailable,
			Message: s.problemMessage(c)})
	}
}

// problemMessage returns why the API server is unhealthy. While the code is the same the message is
// kept: connection errors name ever new ports, and each would cause a write.
func (s State) problemMessage(c *clusterv1.ManagedCluster) string {
	prefix := fmt.Sprintf(statusPrefix, s.Health.Code)
	said := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionAvailable)
	if said != nil && said.Reason == clusterv1.ReasonManagedClusterKubeAPIServerUnavailable && strings.HasPrefix(said.Message, prefix) {
		return said.Message
	}
	return prefix + s.Health.Problem
}

// setResources sums up the nodes. Capacity that no node has is kept if another writer set it,
// and dropped if this loop did. Allocatable is replaced.
func (s State) setResources(c *clusterv1.ManagedCluster) {
	if !s.NodesKnown {
		return
	}
	capacity, allocatable := clusterv1.ResourceList{}, clusterv1.ResourceList{}
	for _, n := range s.Nodes {
		addQuantities(capacity, n.Capacity)
		if !n.Cordoned {
			addQuantities(allocatable, n.Allocatable)
		}
	}
	ours := ownCapacity(c.ManagedFields)
	for name, quantity := range c.Status.Capacity {
		if _, ok := capacity[name]; !ok && !ours[name] {
			capacity[name] = quantity
		}
	}
	c.Status.Capacity, c.Status.Allocatable = keepForm(capacity, c.Status.Capacity), keepForm(allocatable, c.Status.Allocatable)
}

func addQuantities(sum, more clusterv1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

// keepForm keeps the previous form of quantities whose value is unchanged, so that "1000m" and
// "1" are not a change.
func keepForm(next, before clusterv1.ResourceList) clusterv1.ResourceList {
	for name, quantity := range next {
		if old, ok := before[name]; ok && old.Cmp(quantity) == 0 {
			next[name] = old
			continue
		}
		// Summing leaves the form undetermined; parsing the text fixes it.
		if q, err := resource.ParseQuantity(quantity.String()); err == nil {
			next[name] = q
		}
	}
	return next
}

// changeEvents reports changes of availability, and omitted claims, in the cluster's namespace.
func changeEvents(before, after *clusterv1.ManagedCluster) []reconcile.Event {
	was := apimeta.FindStatusCondition(before.Status.Conditions, clusterv1.ConditionAvailable)
	is := apimeta.FindStatusCondition(after.Status.Conditions, clusterv1.ConditionAvailable)
	out := claimEvents(before, after)
	if is == nil || (was != nil && was.Status == is.Status) {
		return out
	}
	e := reconcile.Event{Type: "Normal", Reason: "Available", Message: is.Message, Namespace: after.Name}
	if is.Status != metav1.ConditionTrue {
		e.Type, e.Reason = "Warning", "Unavailable"
	}
	return append(out, e)
}
