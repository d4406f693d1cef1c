// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"cmp"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Values of the label.
const (
	wanted   = "true"
	unwanted = "false"
)

// maxLabelName is how long the part of a label's key after the slash may be.
const maxLabelName = 63

// labelKey is the key of one hub's label; hubHash is the hex SHA-256 of its server URL.
func labelKey(hubHash string) string {
	return clusterv1.LabelPrefixManagedNamespace + hubHash[:min(len(hubHash), maxLabelName)]
}

// Namespace is what is kept of a namespace with the hub's label.
type Namespace struct {
	Name string
	// Label is the value of the label.
	Label string
	// Terminating is true when the namespace is being deleted.
	Terminating bool
}

// State is the input of a decision.
type State struct {
	Now time.Time
	// Cluster is nil when the hub has no ManagedCluster of that name.
	Cluster *clusterv1.ManagedCluster
	// Present are the namespaces with the hub's label, by name.
	Present map[string]Namespace
	// Failed holds why a namespace could not be labelled, by name.
	Failed map[string]string
}

// Label is a label to write; a wanted namespace is created if it does not exist.
type Label struct{ Namespace, Value string }

// labelsToWrite returns the labels to write on this cluster, sorted by namespace.
func labelsToWrite(s State) []Label {
	names, known := s.requested()
	if !known {
		return nil
	}
	var out []Label
	for _, name := range names {
		if refusalOf(name) == "" && s.Present[name].Label != wanted {
			out = append(out, Label{name, wanted})
		}
	}
	for name, n := range s.Present {
		if n.Label != unwanted && !slices.Contains(names, name) {
			out = append(out, Label{name, unwanted})
		}
	}
	slices.SortFunc(out, func(a, b Label) int { return strings.Compare(a.Namespace, b.Namespace) })
	return out
}

// requested returns the namespaces the hub requests, without duplicates. They are unknown
// while the hub does not accept the cluster: the list may be empty then.
func (s State) requested() (names []string, known bool) {
	switch {
	case s.Cluster == nil || s.Cluster.DeletionTimestamp != nil:
		return nil, true
	case !isAccepted(s.Cluster):
		return nil, false
	}
	for _, entry := range s.Cluster.Status.ManagedNamespaces {
		if !slices.Contains(names, entry.Name) {
			names = append(names, entry.Name)
		}
	}
	return names, true
}

func isAccepted(c *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ConditionHubAccepted)
}

// refusalOf returns why a namespace is neither created nor labelled; empty when it is.
func refusalOf(name string) string {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "not a valid namespace name: " + strings.Join(problems, "; ")
	}
	for _, prefix := range []string{"kube-", "openshift-", "open-cluster-management"} {
		if strings.HasPrefix(name, prefix) {
			return "system namespaces are not managed by sets: " + prefix + "*"
		}
	}
	return ""
}

// Decide sets the condition of each entry.
func Decide(s State) reconcile.Plan {
	if s.Cluster == nil || s.Cluster.DeletionTimestamp != nil || !isAccepted(s.Cluster) {
		return reconcile.Plan{}
	}
	next := s.Cluster.DeepCopy()
	for i := range next.Status.ManagedNamespaces {
		entry := &next.Status.ManagedNamespaces[i]
		if condition, ok := s.condition(entry.Name); ok {
			condition.ObservedGeneration = next.Generation
			reconcile.SetCondition(&entry.Conditions, condition, s.Now)
		}
	}
	return reconcile.Plan{Object: next}
}

// condition returns the condition of one namespace; false when there is nothing to report
// yet.
func (s State) condition(name string) (metav1.Condition, bool) {
	c := metav1.Condition{
		Type: clusterv1.ConditionNamespaceAvailable, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonNamespaceApplyFailed,
		Message: cmp.Or(refusalOf(name), s.Failed[name]),
	}
	switch have := s.Present[name]; {
	case c.Message != "":
	case have.Terminating:
		c.Message = "the namespace is being deleted; it is created again once it is gone"
	case have.Label == wanted:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, clusterv1.ReasonNamespaceApplied, "Namespace exists"
	default:
		return c, false
	}
	return c, true
}
