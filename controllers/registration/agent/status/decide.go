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
	// patience is how long the API server must fail before it is reported.
	patience = 20 * time.Second
	// statusPrefix begins what is said of an API server that is not well; the
	// rest differs from answer to answer.
	statusPrefix = "The kube-apiserver is not ok, status code: %d, "
)

// State is what a decision is made on.
type State struct {
	Now     time.Time
	Cluster *clusterv1.ManagedCluster
	Health  Health
	Nodes   []Node
	// NodesKnown and ClaimsKnown are false until the collections have been
	// listed; claims are known when claims and properties are.
	NodesKnown, ClaimsKnown bool
	// Claims and Properties are the ClusterClaims and ClusterProperties that may
	// be reported.
	Claims, Properties []Claim
	// MaxClaims and ReservedSuffixes are the settings of that name.
	MaxClaims        int
	ReservedSuffixes []string
	// Credential is where the agent stands with its certificate.
	Credential credential.Report
}

// Decide says what the ManagedCluster should say.
func Decide(s State) reconcile.Plan {
	if s.Cluster == nil || !apimeta.IsStatusConditionTrue(s.Cluster.Status.Conditions, clusterv1.ConditionHubAccepted) {
		return reconcile.Plan{}
	}
	next := s.Cluster.DeepCopy()
	p := reconcile.Plan{Object: next}
	s.set(next, metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue,
		Reason: clusterv1.ReasonManagedClusterJoined, Message: "Managed cluster joined"})
	s.rotated(next)
	s.available(next)
	if apimeta.IsStatusConditionTrue(next.Status.Conditions, clusterv1.ConditionAvailable) && s.Health.Healthy() {
		if s.Health.Version != "" {
			next.Status.Version.Kubernetes = s.Health.Version
		}
		s.resources(next)
		s.claims(next)
	}
	p.Events = events(s.Cluster, next)
	return p
}

func (s State) set(c *clusterv1.ManagedCluster, condition metav1.Condition) {
	condition.ObservedGeneration = c.Generation
	reconcile.SetCondition(&c.Status.Conditions, condition, s.Now)
}

// rotated tells how the client certificate is.
func (s State) rotated(c *clusterv1.ManagedCluster) {
	condition := metav1.Condition{Type: clusterv1.ConditionClusterCertificateRotated, Status: metav1.ConditionTrue,
		Reason: clusterv1.ReasonClientCertificateUpdated, Message: s.Credential.Message}
	switch {
	case s.Credential.Phase != credential.PhaseServing:
		return
	case s.Credential.Renewal == credential.PhaseDenied, s.Credential.Renewal == credential.PhaseThrottled:
		condition.Status, condition.Reason = metav1.ConditionFalse, clusterv1.ReasonClientCertificateUpdateFailed
	case s.Credential.Renewal != "":
		// A renewal that is under way is no news.
		return
	}
	s.set(c, condition)
}

// available sets the condition by the health of the API server. A failure is
// only told when it has lasted; until then what was said stays.
func (s State) available(c *clusterv1.ManagedCluster) {
	switch h := s.Health; {
	case h.Checked.IsZero():
	case h.Healthy():
		s.set(c, metav1.Condition{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionTrue,
			Reason: clusterv1.ReasonManagedClusterAvailable, Message: "Managed cluster is available"})
	case h.Checked.Sub(h.FailingSince) >= patience:
		s.set(c, metav1.Condition{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionFalse,
			Reason:  clusterv1.ReasonManagedClusterKubeAPIServerUnavailable,
			Message: s.problem(c)})
	}
}

// problem says why the API server is not well. While the code stays the words
// stay: connections break with ever other ports, and each would be a write.
func (s State) problem(c *clusterv1.ManagedCluster) string {
	prefix := fmt.Sprintf(statusPrefix, s.Health.Code)
	said := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionAvailable)
	if said != nil && said.Reason == clusterv1.ReasonManagedClusterKubeAPIServerUnavailable && strings.HasPrefix(said.Message, prefix) {
		return said.Message
	}
	return prefix + s.Health.Problem
}

// resources sums up the nodes. Capacity that no node has is left if somebody
// else wrote it, and dropped if it was this loop. Allocatable is replaced.
func (s State) resources(c *clusterv1.ManagedCluster) {
	if !s.NodesKnown {
		return
	}
	capacity, allocatable := clusterv1.ResourceList{}, clusterv1.ResourceList{}
	for _, n := range s.Nodes {
		add(capacity, n.Capacity)
		if !n.Cordoned {
			add(allocatable, n.Allocatable)
		}
	}
	ours := ownCapacity(c.ManagedFields)
	for name, quantity := range c.Status.Capacity {
		if _, ok := capacity[name]; !ok && !ours[name] {
			capacity[name] = quantity
		}
	}
	c.Status.Capacity, c.Status.Allocatable = normal(capacity, c.Status.Capacity), normal(allocatable, c.Status.Allocatable)
}

func add(sum, more clusterv1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

// normal gives quantities that mean the same as before the form from before, so
// that "1000m" and "1" are no change.
func normal(next, before clusterv1.ResourceList) clusterv1.ResourceList {
	for name, quantity := range next {
		if old, ok := before[name]; ok && old.Cmp(quantity) == 0 {
			next[name] = old
			continue
		}
		// Summing leaves the form open; parsing its text settles it.
		if q, err := resource.ParseQuantity(quantity.String()); err == nil {
			next[name] = q
		}
	}
	return next
}

// events tells of a change of availability, and of claims that are left out, in the
// cluster's namespace.
func events(before, after *clusterv1.ManagedCluster) []reconcile.Event {
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
