// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
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

// labelKey is the key of the label of one hub; hubHash is the hex SHA-256 of its
// server URL.
func labelKey(hubHash string) string {
	return clusterv1.LabelPrefixManagedNamespace + hubHash[:min(len(hubHash), maxLabelName)]
}

// Namespace is what is kept of a namespace that carries the hub's label.
type Namespace struct {
	Name string
	// Label is the value of the label.
	Label string
	// Terminating tells that the namespace is being deleted.
	Terminating bool
}

// State is what a decision is made on.
type State struct {
	Now time.Time
	// Cluster is nil when the hub has none of that name.
	Cluster *clusterv1.ManagedCluster
	// Present are the namespaces with the hub's label, by name.
	Present map[string]Namespace
	// Failed says of namespaces why they could not be labelled.
	Failed map[string]string
}

// Label is a label to be written; a namespace that is wanted is made if it is
// not there.
type Label struct{ Namespace, Value string }

// labels says what is to be written on this cluster, ordered by name.
func labels(s State) []Label {
	names, known := s.asked()
	if !known {
		return nil
	}
	var out []Label
	for _, name := range names {
		if refused(name) == "" && s.Present[name].Label != wanted {
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

// asked are the namespaces that the hub asks for, each once. They are not known
// while the hub does not accept the cluster: it may say nothing then.
func (s State) asked() (names []string, known bool) {
	switch {
	case s.Cluster == nil || s.Cluster.DeletionTimestamp != nil:
		return nil, true
	case !accepted(s.Cluster):
		return nil, false
	}
	for _, entry := range s.Cluster.Status.ManagedNamespaces {
		if !slices.Contains(names, entry.Name) {
			names = append(names, entry.Name)
		}
	}
	return names, true
}

func accepted(c *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ConditionHubAccepted)
}

// refused says why a namespace is neither made nor labelled, "" when it is.
func refused(name string) string {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "the name is not one of a namespace: " + strings.Join(problems, "; ")
	}
	for _, prefix := range []string{"kube-", "openshift-", "open-cluster-management"} {
		if strings.HasPrefix(name, prefix) {
			return "namespaces of the system are not managed by sets: " + prefix + "*"
		}
	}
	return ""
}

// Decide says of each entry whether its namespace is there.
func Decide(s State) reconcile.Plan {
	if s.Cluster == nil || s.Cluster.DeletionTimestamp != nil || !accepted(s.Cluster) {
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

// condition tells how it is with one namespace; false when there is nothing to
// tell yet.
func (s State) condition(name string) (metav1.Condition, bool) {
	failed := metav1.Condition{Type: clusterv1.ConditionNamespaceAvailable, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonNamespaceApplyFailed}
	have := s.Present[name]
	switch {
	case refused(name) != "":
		failed.Message = refused(name)
	case s.Failed[name] != "":
		failed.Message = s.Failed[name]
	case have.Terminating:
		failed.Message = "the namespace is being deleted; it is made again when it is gone"
	case have.Label == wanted:
		return metav1.Condition{Type: clusterv1.ConditionNamespaceAvailable, Status: metav1.ConditionTrue,
			Reason: clusterv1.ReasonNamespaceApplied, Message: "Namespace is there"}, true
	default:
		return metav1.Condition{}, false
	}
	return failed, true
}
