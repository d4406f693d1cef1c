// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply/ignore"
	"github.com/kubectl-ocm/kubectl-ocm/internal/feedback"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// DiffLive compares what a work wants with what is on the clusters. Without Manifests that is
// what the work on the hub wants; works that a set of this name has created count too. With
// Spoke, for one cluster, it compares the objects there as the agent's next write would change
// them. Otherwise it uses what agents have reported: whether each object is applied and
// exists, and the values of feedback rules whose paths lead to fields that the manifest
// declares. Live of a change is what exists, Object what is wanted. Nothing is written. An
// error returned with changes is about what could not be compared.
func DiffLive(ctx context.Context, o Options) ([]fleet.Change, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	clusters, err := o.clusters(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.oneForSpoke(clusters); err != nil {
		return nil, err
	}
	found, err := o.ofThisName(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, byPlace)
	var out []fleet.Change
	var failures []error
	without := slices.Clone(clusters)
	for i := range found {
		cluster := found[i].GetNamespace()
		if !slices.Contains(clusters, cluster) {
			continue
		}
		without = slices.DeleteFunc(without, func(name string) bool { return name == cluster })
		changes, err := o.diffLive(ctx, &found[i])
		out, failures = append(out, changes...), append(failures, err)
	}
	for _, cluster := range without {
		failures = append(failures, naming.NoWork(o.Name, "on cluster "+cluster, o.Hub))
	}
	return out, firstOf(failures)
}

// firstOf returns the first error, and says how many more there are.
func firstOf(all []error) error {
	all = slices.DeleteFunc(all, func(err error) bool { return err == nil })
	if len(all) == 0 {
		return nil
	}
	var e *fleet.Error
	if errors.As(all[0], &e) && len(all) > 1 {
		e.Message += fmt.Sprintf(", and %s more", fleet.Many(len(all)-1, "error"))
	}
	return all[0]
}

// oneForSpoke refuses the context of one cluster for several targets.
func (o *Options) oneForSpoke(clusters []string) error {
	if o.Spoke == nil || len(clusters) == 1 {
		return nil
	}
	return fleet.Misuse(fmt.Sprintf("the managed cluster's context is for one cluster, but the targets are %s",
		fleet.Many(len(clusters), "cluster")), "", NameOne.With())
}

// diffLive compares one work.
func (o *Options) diffLive(ctx context.Context, u *unstructured.Unstructured) ([]fleet.Change, error) {
	wanted := u
	if len(o.Manifests) > 0 {
		wanted = u.DeepCopy()
		wanted.Object["spec"] = o.spec()
	}
	w, err := typed.FromUnstructured[workv1.ManifestWork](wanted)
	if err != nil {
		return nil, err
	}
	if o.Spoke != nil {
		return o.diffSpoke(ctx, w)
	}
	current := isObserved(u, workv1.ConditionApplied)
	var out []fleet.Change
	for i, m := range w.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(m.Raw); err != nil {
			continue // the agent says what is wrong with it, of the whole work
		}
		out = append(out, compareReported(w, i, object, current))
	}
	return out, nil
}

// compareReported compares one object with what the agent has reported of it. current is true when the
// report is about the current spec.
func compareReported(w *workv1.ManifestWork, i int, object *unstructured.Unstructured, current bool) fleet.Change {
	o := reportOf(w, i, object)
	want := map[string]any{"applied": "True", "available": "True"}
	live := map[string]any{"applied": cmp.Or(o.Applied, "unknown"), "available": cmp.Or(o.Available, "unknown")}
	if !current {
		live["applied"], o.Message = "unknown", "the agent has not answered for the current spec"
	}
	if o.Message != "" {
		live["message"] = o.Message
	}
	declared, reported := map[string]any{}, map[string]any{}
	for _, v := range declaredValues(w, object) {
		declared[v.Name], reported[v.Name] = valueText(v.FieldValue), "unknown"
		if at := slices.IndexFunc(o.Feedback, func(have Value) bool { return have.Name == v.Name }); at >= 0 {
			reported[v.Name] = o.Feedback[at].Value
		}
	}
	if len(declared) > 0 {
		want["feedback"], live["feedback"] = declared, reported
	}
	return fleet.Change{Object: page(object, want), Live: page(object, live), Action: fleet.Configured, On: w.Namespace}
}

// page returns what is known of an object, for a comparison line by line.
func page(object *unstructured.Unstructured, content map[string]any) *unstructured.Unstructured {
	out := fleet.Named(object.GroupVersionKind(), object.GetNamespace(), object.GetName())
	out.Object["status"] = content
	return out
}

// declaredValues returns what the feedback rules of an object would read from the fields that
// its agent keeps as the manifest declares them.
func declaredValues(w *workv1.ManifestWork, object *unstructured.Unstructured) []workv1.FeedbackValue {
	plural, _ := apimeta.UnsafeGuessKindToResource(object.GroupVersionKind())
	for _, m := range w.Status.ResourceStatus.Manifests {
		if r := m.ResourceMeta; r.Kind == object.GetKind() && r.Group == plural.Group && r.Resource != "" {
			plural.Resource = r.Resource // not every plural is regular
		}
	}
	id := apply.IDOf(plural, object.GetNamespace(), object.GetName())
	kept := keptFields(&w.Spec, id, object)
	if kept == nil {
		return nil
	}
	paths := slices.DeleteFunc(slices.Clone(apply.RulesFor(&w.Spec, id).Feedback), func(rule workv1.FeedbackRule) bool {
		return rule.Type != workv1.FeedbackRuleTypeJSONPaths
	})
	values, _ := feedback.Evaluate(kept, paths, feedback.Options{RawJSON: true}) // the agent reports which rule is wrong
	return values
}

// keptFields returns the manifest without the fields that a strategy ignores; nil when the
// agent keeps no field of an existing object as declared.
func keptFields(spec *workv1.ManifestWorkSpec, id apply.ID, object *unstructured.Unstructured) *unstructured.Unstructured {
	o, err := apply.OptionsFor(spec, id)
	if err != nil || o.Strategy == workv1.UpdateStrategyTypeCreateOnly || o.Strategy == workv1.UpdateStrategyTypeReadOnly {
		return nil
	}
	fields, err := ignore.Parse(o.Ignore)
	if err != nil {
		return nil
	}
	kept, _ := fields.Rest(object)
	return kept
}
