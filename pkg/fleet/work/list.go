// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
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
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	items, err := o.listMatching(ctx)
	if err != nil {
		return nil, err
	}
	var out []Info
	going := Departures{Hub: o.Hub}
	for _, u := range items {
		info, err := InfoOf(u)
		if err != nil {
			return nil, err
		}
		if b := going.Blocker(ctx, u); b != nil {
			info.Message = b.Cause
		}
		out = append(out, info)
	}
	return out, nil
}

// listMatching returns the selected works, by cluster and name.
func (o *ListOptions) listMatching(ctx context.Context) ([]*unstructured.Unstructured, error) {
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
		if err := fleet.NeedHub(ctx, o.Hub); err != nil {
			return nil, err
		}
	}
	var out []*unstructured.Unstructured
	for i := range items {
		if clusters != nil && !slices.Contains(clusters, items[i].GetNamespace()) || len(o.Names) > 0 && !slices.Contains(o.Names, items[i].GetName()) {
			continue
		}
		out = append(out, &items[i])
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out, nil
}

// InfoOf returns the summary of one ManifestWork.
func InfoOf(u *unstructured.Unstructured) (Info, error) {
	w, err := typed.FromUnstructured[workv1.ManifestWork](u)
	if err != nil {
		return Info{}, err
	}
	info := Info{Cluster: w.Namespace, Name: w.Name, Created: w.CreationTimestamp, Labels: w.Labels, Generation: w.Generation,
		Owner: ownerOf(u), Objects: cluster.Count{Total: len(w.Spec.Workload.Manifests)}, Strategy: strategy(w)}
	applied := apimeta.FindStatusCondition(w.Status.Conditions, workv1.ConditionApplied)
	available := apimeta.FindStatusCondition(w.Status.Conditions, workv1.ConditionAvailable)
	if applied != nil {
		info.Observed = applied.ObservedGeneration
		if applied.ObservedGeneration >= w.Generation {
			info.Applied = string(applied.Status)
		}
	}
	if available != nil && info.Applied == "True" {
		info.Available = string(available.Status)
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
			info.Message = strings.ToLower(m.ResourceMeta.Kind) + "/" + m.ResourceMeta.Name + ": " + note
		}
	}
	return info, nil
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
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	note, _ := strings.CutPrefix(fleet.OneLine(c.Message), workv1.MessageManifestApplied+": ")
	if note == fleet.OneLine(c.Message) {
		return ""
	}
	return note
}

func state(w *workv1.ManifestWork, info *Info) string {
	switch {
	case w.DeletionTimestamp != nil:
		return Deleting
	case info.Applied == "False":
		return ApplyFailed
	case info.Applied == "":
		return Pending
	case info.Available == "True" && isCurrentIn(w, workv1.ConditionComplete):
		return Complete
	case info.Available == "True" && isCurrentIn(w, workv1.ConditionDegraded):
		return Degraded
	case info.Available == "True" && isCurrentIn(w, workv1.ConditionProgressing):
		return Progressing
	case info.Available == "True":
		return Ready
	}
	return NotAvailable
}

// isCurrentIn reports whether a condition that rules make is True for the current spec.
func isCurrentIn(w *workv1.ManifestWork, kind string) bool {
	c := apimeta.FindStatusCondition(w.Status.Conditions, kind)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= w.Generation
}

// strategy returns the update strategy of a work's objects.
func strategy(w *workv1.ManifestWork) string {
	out := ""
	for _, c := range w.Spec.ManifestConfigs {
		if c.UpdateStrategy == nil {
			continue
		}
		if name := string(c.UpdateStrategy.Type); out == "" {
			out = name
		} else if out != name {
			return "mixed"
		}
	}
	if out == "" {
		return fmt.Sprint(workv1.UpdateStrategyTypeUpdate)
	}
	return out
}
