// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// The states that the conditions of a work are folded into.
const (
	Pending      = "Pending"
	Ready        = "Ready"
	Complete     = "Complete"
	ApplyFailed  = "ApplyFailed"
	NotAvailable = "NotAvailable"
	Deleting     = "Deleting"
	Progressing  = "Progressing"
	Degraded     = "Degraded"
)

// ListOptions say which works to list.
type ListOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Names keeps works of these names; empty keeps all.
	Names []string
	// Targets keeps works of these clusters; empty keeps all.
	Targets cluster.Targets
}

// Info is the summary of one work on one cluster.
type Info struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Applied and Available are the status of the condition; "" when absent or about an older
	// spec.
	Applied   string `json:"applied,omitempty"`
	Available string `json:"available,omitempty"`
	// Objects counts its objects that are applied and exist.
	Objects cluster.Count `json:"objects"`
	State   string        `json:"state"`
	// Owner is what created it: a replica set, an add-on; empty for a user.
	Owner   string            `json:"owner,omitempty"`
	Created metav1.Time       `json:"created"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Generation is that of the spec, Observed the one that was applied.
	Generation int64 `json:"generation"`
	Observed   int64 `json:"observed"`
	// Executor is the service account that applies it on the cluster.
	Executor string `json:"executor,omitempty"`
	// Strategy is the update strategy, when all its objects share one.
	Strategy string `json:"strategy,omitempty"`
	// Message is the first trouble, else anything special.
	Message string `json:"message,omitempty"`
}

// List lists works by cluster and name, with one list request for the works and one for the
// clusters when those are selected. For works that are being deleted it also reads the
// cluster's object.
func List(ctx context.Context, o ListOptions) ([]Info, error) {
	var out []Info
	err := o.visit(ctx, func(info Info, _ *workv1.ManifestWork) { out = append(out, info) })
	return out, err
}

// visit calls see for each of the selected works, by cluster and name.
func (o *ListOptions) visit(ctx context.Context, see func(Info, *workv1.ManifestWork)) error {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	items, err := o.listMatching(ctx)
	if err != nil {
		return err
	}
	going := Departures{Hub: o.Hub}
	for i := range items {
		w, err := typed.FromUnstructured[workv1.ManifestWork](&items[i])
		if err != nil {
			return err
		}
		info := infoOf(&items[i], w)
		if b := going.Blocker(ctx, &items[i]); b != nil {
			info.Message = b.Cause
		}
		see(info, w)
	}
	return nil
}

// listMatching returns the selected works, by cluster and name.
func (o *ListOptions) listMatching(ctx context.Context) ([]unstructured.Unstructured, error) {
	var clusters []string
	if !o.Targets.Empty() && !o.Targets.All {
		var err error
		if clusters, err = o.Targets.Resolve(ctx, o.Hub); err != nil {
			return nil, err
		}
	}
	namespace := ""
	if len(clusters) == 1 {
		namespace = clusters[0]
	}
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManifestWorks, Namespace: namespace})
	if err != nil {
		return nil, fleet.Explain("listing manifestworks", o.Hub, err)
	}
	if len(items) == 0 {
		return nil, fleet.NeedHub(ctx, o.Hub)
	}
	items = slices.DeleteFunc(items, func(u unstructured.Unstructured) bool {
		return clusters != nil && !slices.Contains(clusters, u.GetNamespace()) || len(o.Names) > 0 && !slices.Contains(o.Names, u.GetName())
	})
	slices.SortFunc(items, byPlace)
	return items, nil
}

// byPlace orders works by cluster and name.
func byPlace(a, b unstructured.Unstructured) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// InfoOf returns the summary of one ManifestWork.
func InfoOf(u *unstructured.Unstructured) (Info, error) {
	w, err := typed.FromUnstructured[workv1.ManifestWork](u)
	if err != nil {
		return Info{}, err
	}
	return infoOf(u, w), nil
}

// infoOf returns the summary of a work; u and w are the same one.
func infoOf(u *unstructured.Unstructured, w *workv1.ManifestWork) Info {
	info := Info{Cluster: w.Namespace, Name: w.Name, Created: w.CreationTimestamp, Labels: w.Labels, Generation: w.Generation,
		Owner: ownerOf(u), Objects: cluster.Count{Total: len(w.Spec.Workload.Manifests)}, Strategy: strategy(w)}
	if applied := apimeta.FindStatusCondition(w.Status.Conditions, workv1.ConditionApplied); applied != nil {
		info.Observed = applied.ObservedGeneration
		if applied.ObservedGeneration >= w.Generation {
			info.Applied = string(applied.Status)
		}
	}
	if info.Applied == "True" {
		info.Available = cluster.ConditionStatus(w.Status.Conditions, workv1.ConditionAvailable)
	}
	info.Objects.Good = goodObjects(w, info.Applied != "")
	if e := w.Spec.Executor; e != nil && e.Subject.ServiceAccount != nil {
		info.Executor = e.Subject.ServiceAccount.Namespace + "/" + e.Subject.ServiceAccount.Name
	}
	info.State = state(w, &info)
	if info.State != Ready {
		if b := blockerOf(u); b != nil {
			info.Message = b.Cause
		}
	}
	for _, m := range w.Status.ResourceStatus.Manifests {
		if note := noteOf(m.Conditions); note != "" && info.Message == "" {
			info.Message = objectOf(m) + ": " + note
		}
	}
	return info
}

// goodObjects counts what is applied and available. For very many objects, the status of an
// agent lists only those that are in trouble.
func goodObjects(w *workv1.ManifestWork, answered bool) int {
	total, good := len(w.Spec.Workload.Manifests), 0
	for _, m := range w.Status.ResourceStatus.Manifests {
		if apimeta.IsStatusConditionTrue(m.Conditions, workv1.ConditionApplied) && apimeta.IsStatusConditionTrue(m.Conditions, workv1.ConditionAvailable) {
			good++
		}
	}
	if listed := len(w.Status.ResourceStatus.Manifests); answered && listed > 0 {
		good += max(total-listed, 0)
	}
	return min(good, total)
}

// noteOf returns what an agent remarks on an object that is applied: something special about
// how, or how it is kept.
func noteOf(conditions []metav1.Condition) string {
	c := apimeta.FindStatusCondition(conditions, workv1.ConditionApplied)
	if c != nil && c.Status == metav1.ConditionTrue {
		if note, ok := strings.CutPrefix(fleet.OneLine(c.Message), workv1.MessageManifestApplied+": "); ok {
			return note
		}
	}
	return ""
}

func state(w *workv1.ManifestWork, info *Info) string {
	switch {
	case w.DeletionTimestamp != nil:
		return Deleting
	case info.Applied == "False":
		return ApplyFailed
	case info.Applied == "":
		return Pending
	case info.Available != "True":
		return NotAvailable
	}
	// The conditions that rules make have the names of the states.
	for _, kind := range []string{workv1.ConditionComplete, workv1.ConditionDegraded, workv1.ConditionProgressing} {
		c := apimeta.FindStatusCondition(w.Status.Conditions, kind)
		if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= w.Generation {
			return kind
		}
	}
	return Ready
}

// strategy returns the update strategy of a work's objects.
func strategy(w *workv1.ManifestWork) string {
	var out workv1.UpdateStrategyType
	for _, c := range w.Spec.ManifestConfigs {
		switch {
		case c.UpdateStrategy == nil:
		case out != "" && out != c.UpdateStrategy.Type:
			return "mixed"
		default:
			out = c.UpdateStrategy.Type
		}
	}
	return string(cmp.Or(out, workv1.UpdateStrategyTypeUpdate))
}

// SetInfo is the summary of one ManifestWorkReplicaSet.
type SetInfo struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Placements are those of its spec.
	Placements []string `json:"placements"`
	// Clusters is how many are selected, the others how many of their works are in that state.
	Clusters    int `json:"clusters"`
	Applied     int `json:"applied"`
	Available   int `json:"available"`
	Progressing int `json:"progressing"`
	Degraded    int `json:"degraded"`
	// Updated counts works that have succeeded with the current template.
	Updated int `json:"updated"`
	// Rollout is how far the current template has reached the clusters.
	Rollout cluster.Rollout   `json:"rollout"`
	Created metav1.Time       `json:"created"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Strategy is that of the rollout, when all placements share one.
	Strategy string `json:"strategy,omitempty"`
	// Message is what is wrong.
	Message string `json:"message,omitempty"`
}

// ListSets lists sets of works of a namespace, or of all when it is empty, by namespace and
// name. It keeps sets with the given names; none keeps all.
func ListSets(ctx context.Context, hub *fleet.Cluster, namespace string, names []string) ([]SetInfo, error) {
	items, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.ReplicaSets, Namespace: namespace})
	if err != nil {
		return nil, fleet.Explain("listing manifestworkreplicasets", hub, err)
	}
	if len(items) == 0 {
		return nil, fleet.NeedHub(ctx, hub)
	}
	items = slices.DeleteFunc(items, func(u unstructured.Unstructured) bool { return len(names) > 0 && !slices.Contains(names, u.GetName()) })
	slices.SortFunc(items, byPlace)
	var out []SetInfo
	err = placement.TakeUp(&items, func(set *workv1alpha1.ManifestWorkReplicaSet) { out = append(out, SetInfoOf(set)) })
	return out, err
}

// SetInfoOf returns the summary of one set of works.
func SetInfoOf(set *workv1alpha1.ManifestWorkReplicaSet) SetInfo {
	sum := set.Status.Summary
	succeeded, selected := set.Status.RolledOut()
	// A hub that does not count the selected clusters counts the works it has created.
	info := SetInfo{Namespace: set.Namespace, Name: set.Name, Clusters: max(selected, sum.Total), Applied: sum.Applied, Available: sum.Available,
		Progressing: sum.Progressing, Degraded: sum.Degraded, Updated: succeeded, Created: set.CreationTimestamp, Labels: set.Labels}
	info.Rollout = rolloutOf(set, succeeded, selected)
	for i, ref := range set.Spec.PlacementRefs {
		info.Placements = append(info.Placements, ref.Name)
		if kind := string(ref.RolloutStrategy.Type); i == 0 {
			info.Strategy = kind
		} else if info.Strategy != kind {
			info.Strategy = "mixed"
		}
	}
	for _, kind := range []string{workv1alpha1.ConditionPlacementVerified, workv1alpha1.ConditionManifestworkApplied, workv1alpha1.ConditionPlacementRolledOut} {
		if c := apimeta.FindStatusCondition(set.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			info.Message = cmp.Or(fleet.OneLine(c.Message), c.Reason)
			return info
		}
	}
	if len(set.Status.Conditions) == 0 {
		info.Message = "the hub has not processed it"
	}
	return info
}

// rolloutOf returns how far the template of a set has reached its clusters.
func rolloutOf(set *workv1alpha1.ManifestWorkReplicaSet, succeeded, selected int) cluster.Rollout {
	out := cluster.Rollout{Total: selected, Done: succeeded}
	out.Waiting, out.Failed = set.Status.Turns()
	out.Running = max(out.Total-out.Done-out.Waiting-out.Failed, 0)
	if c := apimeta.FindStatusCondition(set.Status.Conditions, workv1alpha1.ConditionPlacementRolledOut); c != nil && !c.LastTransitionTime.IsZero() {
		out.Since = &c.LastTransitionTime
	}
	return out
}
