// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var worksResource = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)

// place is where the works of an instance are, and how they are named.
type place struct {
	namespace string
	// deploy is the name of deploying works without the index, hook that of the hook work.
	deploy, hook string
	labels       map[string]string
	// owner is nil for works outside the instance's namespace.
	owner *metav1.OwnerReference
}

func (s State) managedPlace() place {
	prefix, owner := addonv1alpha1.WorkNamePrefix+s.AddOn.Name, addonkit.Owner(s.AddOn)
	return place{
		namespace: s.AddOn.Namespace, deploy: prefix + addonv1alpha1.WorkSuffixDeploy, hook: prefix + addonv1alpha1.WorkSuffixPreDelete,
		labels: map[string]string{addonv1alpha1.LabelAddOnName: s.AddOn.Name},
		owner:  &owner,
	}
}

// hostingPlace returns the place on the hosting cluster; its namespace is "" without one.
func (s State) hostingPlace() place {
	p := s.managedPlace()
	p.namespace = ""
	if s.Hosting != nil {
		p.namespace = s.Hosting.Name
	}
	p.deploy += addonv1alpha1.WorkSuffixHosting + s.AddOn.Namespace
	p.hook += addonv1alpha1.WorkSuffixHosting + s.AddOn.Namespace
	if p.namespace != s.AddOn.Namespace {
		p.labels[addonv1alpha1.LabelAddOnNamespace], p.owner = s.AddOn.Namespace, nil
	}
	return p
}

// indexOf returns the index in the name of a deploying work, -1 if an earlier version wrote
// none; false for any other name.
func (p place) indexOf(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, p.deploy)
	if ok && rest == "" {
		return -1, true
	}
	number, ok := strings.CutPrefix(rest, "-")
	i, err := strconv.Atoi(number)
	return i, ok && err == nil && i >= 0 && number == strconv.Itoa(i)
}

// worksOf returns the deploying works of a place.
func (s State) worksOf(p place) []*workv1.ManifestWork {
	var out []*workv1.ManifestWork
	for _, w := range s.Works {
		if _, ok := p.indexOf(w.Name); ok && w.Namespace == p.namespace {
			out = append(out, w)
		}
	}
	return out
}

// hookOf returns the hook work of a place, or nil if there is none.
func (s State) hookOf(p place) *workv1.ManifestWork {
	for _, w := range s.Works {
		if w.Namespace == p.namespace && w.Name == p.hook {
			return w
		}
	}
	return nil
}

// onHosting returns the works on hosting clusters, including previous ones.
func (s State) onHosting() (deploy, hooks []*workv1.ManifestWork) {
	p := s.hostingPlace()
	for _, w := range s.Works {
		if _, ok := p.indexOf(w.Name); ok {
			deploy = append(deploy, w)
		} else if w.Name == p.hook {
			hooks = append(hooks, w)
		}
	}
	return deploy, hooks
}

// newWork returns a work of a place.
func (p place) newWork(name string, manifests []addonkit.Manifest, configs []workv1.ManifestConfigOption) *workv1.ManifestWork {
	w := &workv1.ManifestWork{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name, Labels: maps.Clone(p.labels)},
	}
	if p.owner != nil {
		w.OwnerReferences = []metav1.OwnerReference{*p.owner}
	}
	for _, m := range manifests {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: m.Raw}})
	}
	w.Spec.ManifestConfigs = configs
	return w
}

// write creates the desired work or changes the existing one. A work that is being deleted,
// or is about to be and set to orphan its objects, is left alone.
func (d *draft) write(live, want *workv1.ManifestWork) error {
	if live == nil {
		d.plan.Writes = append(d.plan.Writes, reconcile.Create{Object: want, Lenient: true})
		return nil
	}
	if _, leaving := live.Annotations[workv1.AnnotationKept]; leaving || live.DeletionTimestamp != nil || isCurrent(live, want) {
		return nil
	}
	patch, err := patchOf(live, want)
	if err == nil {
		d.plan.Writes = append(d.plan.Writes, reconcile.Patch{Target: target(live), Body: patch})
	}
	return err
}

// remove deletes works.
func (d *draft) remove(works ...*workv1.ManifestWork) {
	for _, w := range works {
		if w.DeletionTimestamp == nil {
			d.plan.Writes = append(d.plan.Writes, reconcile.Remove{Target: target(w)})
		}
	}
}

func target(w *workv1.ManifestWork) reconcile.Target {
	return reconcile.Target{Resource: worksResource, Namespace: w.Namespace, Name: w.Name, UID: w.UID, Version: w.ResourceVersion}
}

// isCurrent reports whether a work is as desired. What others have added is theirs.
func isCurrent(live, want *workv1.ManifestWork) bool {
	for key, value := range want.Labels {
		if live.Labels[key] != value {
			return false
		}
	}
	const mark = addonv1alpha1.AnnotationConfigSpecHash
	if live.Annotations[mark] != want.Annotations[mark] || !reflect.DeepEqual(owners(live, want), live.OwnerReferences) {
		return false
	}
	return slices.EqualFunc(live.Spec.Workload.Manifests, want.Spec.Workload.Manifests, sameManifest) &&
		reflect.DeepEqual(defaulted(live.Spec.ManifestConfigs), defaulted(want.Spec.ManifestConfigs)) &&
		sameDeleteOption(live.Spec.DeleteOption, want.Spec.DeleteOption)
}

func sameDeleteOption(live, want *workv1.DeleteOption) bool {
	if live != nil && want != nil {
		return reflect.DeepEqual(live, want)
	}
	plain := func(o *workv1.DeleteOption) bool {
		return o == nil || *o == workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}
	}
	return plain(live) && plain(want)
}

// defaulted returns manifest options as API servers store them.
func defaulted(in []workv1.ManifestConfigOption) []workv1.ManifestConfigOption {
	var out []workv1.ManifestConfigOption
	for _, c := range in {
		c = *c.DeepCopy()
		if c.FeedbackScrapeType == "" {
			c.FeedbackScrapeType = workv1.FeedbackScrapeTypePoll
		}
		if u := c.UpdateStrategy; u != nil && u.Type == "" {
			u.Type = workv1.UpdateStrategyTypeUpdate
		}
		if u := c.UpdateStrategy; u != nil && u.ServerSideApply != nil && u.ServerSideApply.FieldManager == "" {
			u.ServerSideApply.FieldManager = workv1.DefaultFieldManager
		}
		out = append(out, c)
	}
	return out
}

// owners returns the owner references of a work including that of its instance; a former
// instance of the same name is no longer an owner.
func owners(live, want *workv1.ManifestWork) []metav1.OwnerReference {
	if len(want.OwnerReferences) == 0 {
		return live.OwnerReferences
	}
	own := want.OwnerReferences[0]
	out := slices.Clone(live.OwnerReferences)
	at := slices.IndexFunc(out, func(o metav1.OwnerReference) bool { return o.Kind == own.Kind && o.Name == own.Name })
	if at < 0 {
		return append(out, own)
	}
	if have := out[at]; have.UID != own.UID || !ptr.Deref(have.Controller, false) {
		out[at] = own
	}
	return out
}

// patchOf returns the merge patch that brings a work to its desired state. Unwanted fields
// are set to null, because a merge patch leaves other fields alone.
func patchOf(live, want *workv1.ManifestWork) (map[string]any, error) {
	var mark any
	if value := want.Annotations[addonv1alpha1.AnnotationConfigSpecHash]; value != "" {
		mark = value
	}
	spec := map[string]any{"workload": want.Spec.Workload, "manifestConfigs": nil, "deleteOption": nil}
	if len(want.Spec.ManifestConfigs) > 0 {
		spec["manifestConfigs"] = want.Spec.ManifestConfigs
	}
	if o := want.Spec.DeleteOption; o != nil {
		spec["deleteOption"] = map[string]any{
			"propagationPolicy": o.PropagationPolicy, "selectivelyOrphans": o.SelectivelyOrphans, "ttlSecondsAfterFinished": nil,
		}
	}
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"labels": want.Labels, "ownerReferences": owners(live, want),
			"annotations": map[string]any{addonv1alpha1.AnnotationConfigSpecHash: mark},
		},
		"spec": spec,
	})
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(raw, &out)
}

// applied returns a condition of the work's manifests, for its current content, or for any
// content if its agent does not report the generation.
func applied(w *workv1.ManifestWork, kind string) *metav1.Condition {
	c := apimeta.FindStatusCondition(w.Status.Conditions, kind)
	if c == nil || (c.ObservedGeneration != 0 && c.ObservedGeneration < w.Generation) {
		return nil
	}
	return c
}
