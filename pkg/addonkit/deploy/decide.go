// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// draft is a plan being built.
type draft struct {
	State
	parts
	// unrendered is why there are no manifests, or "".
	unrendered string
	object     *addonv1alpha1.ManagedClusterAddOn
	plan       reconcile.Plan
}

// Decide returns the plan for one instance. It is pure. The object of the plan is nil if
// there is nothing to report.
func Decide(s State) reconcile.Plan {
	d := &draft{State: s}
	if s.Waits() {
		return d.plan
	}
	d.object = s.AddOn.DeepCopy()
	d.plan.Object = d.object
	d.plan.OnFailure = &metav1.Condition{
		Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionFalse,
		Reason: addonv1alpha1.ReasonManifestWorkApplyFailed, ObservedGeneration: s.AddOn.Generation,
	}
	var err error
	d.parts, err = s.sortOut()
	switch {
	case s.AddOn.DeletionTimestamp != nil:
		if err != nil {
			d.unrendered = err.Error()
		}
		err = d.advanceDeletion()
	case err == nil:
		err = d.keep()
	}
	if err != nil {
		return d.failed(err)
	}
	return d.plan
}

// failed returns a plan that changes nothing and reports the error.
func (d *draft) failed(err error) reconcile.Plan {
	d.object = d.AddOn.DeepCopy()
	d.plan = reconcile.Plan{Object: d.object, Order: reconcile.Parallel, RequeueAfter: addonkit.RetryDelay}
	d.setCondition(addonv1alpha1.ConditionManifestApplied, metav1.ConditionFalse, addonv1alpha1.ReasonManifestWorkApplyFailed, err.Error())
	if d.Hosting != nil {
		d.setCondition(addonv1alpha1.ConditionHostingManifestApplied, metav1.ConditionFalse, addonv1alpha1.ReasonManifestWorkApplyFailed, err.Error())
	}
	return d.plan
}

// keep deploys an instance that is not being deleted.
func (d *draft) keep() error {
	d.finalizers()
	deployed, hooks := d.onHosting()
	d.remove(hooks...)
	if live := d.hookOf(d.managedPlace()); live != nil {
		d.remove(live)
	}
	d.removeCondition(addonv1alpha1.ConditionHookManifestCompleted)
	if err := d.deployManaged(); err != nil {
		return err
	}
	here := d.hostingPlace()
	for _, w := range deployed {
		if !d.valid() || w.Namespace != here.namespace {
			d.remove(w)
		}
	}
	d.setHostingValidity()
	switch {
	case d.open():
		return d.deployHosting()
	case !d.valid():
		d.removeCondition(addonv1alpha1.ConditionHostingManifestApplied)
	}
	return nil
}

// finalizers sets the finalizers that an instance needs before it is deleted.
func (d *draft) finalizers() {
	deployed, _ := d.onHosting()
	// A hosting cluster that accepts nothing new is waited for only while it holds
	// something.
	there := d.open() || (d.valid() && len(deployed) > 0)
	want := map[string]bool{
		addonv1alpha1.FinalizerPreDelete:        len(d.managedHooks) > 0,
		addonv1alpha1.FinalizerHostingPreDelete: len(d.hostingHooks) > 0 && there,
		// Without a hosting cluster there is nothing to wait for. After a change or removal
		// of the hosting cluster, what is on the previous one is waited for.
		addonv1alpha1.FinalizerHostingManifests: there || (d.Hosting == nil && len(deployed) > 0),
	}
	for _, f := range ours {
		if !want[f] {
			d.release(f)
		} else if !d.has(f) {
			d.object.Finalizers = append(d.object.Finalizers, f)
		}
	}
	d.release(deprecated...)
}

// ours are the finalizers of an instance, in the order in which they are dropped.
var ours = []string{addonv1alpha1.FinalizerPreDelete, addonv1alpha1.FinalizerHostingPreDelete, addonv1alpha1.FinalizerHostingManifests}

var deprecated = []string{
	addonv1alpha1.DeprecatedFinalizerPreDelete, addonv1alpha1.DeprecatedFinalizerHostingPreDelete, addonv1alpha1.DeprecatedFinalizerHostingManifests,
}

func (d *draft) release(finalizers ...string) {
	d.object.Finalizers = slices.DeleteFunc(d.object.Finalizers, func(f string) bool { return slices.Contains(finalizers, f) })
}

func (d *draft) has(finalizer string) bool { return slices.Contains(d.object.Finalizers, finalizer) }

func (d *draft) deployManaged() error {
	return d.deploy(d.managedPlace(), d.managed, addonv1alpha1.ConditionManifestApplied)
}

func (d *draft) deployHosting() error {
	return d.deploy(d.hostingPlace(), d.hosting, addonv1alpha1.ConditionHostingManifestApplied)
}

// deploy brings the works of a place to their desired state, and reports their progress in
// a condition.
func (d *draft) deploy(p place, manifests []addonkit.Manifest, condition string) error {
	var slots []*slot
	for _, w := range d.worksOf(p) {
		i, _ := p.indexOf(w.Name)
		slots = append(slots, slotOf(i, w))
	}
	option := deleteOption(manifests)
	var live []*workv1.ManifestWork
	complete := true
	for _, s := range arrange(slots, manifests) {
		if len(s.manifests) == 0 {
			d.remove(s.work)
			continue
		}
		name := fmt.Sprintf("%s-%d", p.deploy, s.index)
		if s.work != nil {
			name = s.work.Name
		}
		want := p.newWork(name, s.manifests, d.Configs)
		want.Spec.DeleteOption = option
		if d.Mark != "" {
			want.Annotations = map[string]string{addonv1alpha1.AnnotationConfigSpecHash: d.Mark}
		}
		if err := d.write(s.work, want); err != nil {
			return fmt.Errorf("encoding manifestwork %s/%s: %w", want.Namespace, want.Name, err)
		}
		if s.work == nil || s.work.DeletionTimestamp != nil || !isCurrent(s.work, want) {
			complete = false
			continue
		}
		live = append(live, s.work)
	}
	d.setApplied(condition, live, complete && len(manifests) > 0, len(manifests))
	return nil
}

// setApplied sets the condition of applied manifests. Until the agent has answered, the
// previous condition stays, unless it was a failure.
func (d *draft) setApplied(condition string, works []*workv1.ManifestWork, complete bool, manifests int) {
	if manifests == 0 {
		d.setCondition(condition, metav1.ConditionTrue, addonv1alpha1.ReasonManifestApplied, addonv1alpha1.MessageNoManifest)
		return
	}
	for _, w := range works {
		c := applied(w, workv1.ConditionApplied)
		if c != nil && c.Status != metav1.ConditionTrue {
			d.setCondition(condition, metav1.ConditionFalse, addonv1alpha1.ReasonManifestAppliedFailed, addonv1alpha1.MessageManifestsAppliedFailed+firstRefusal(w))
			return
		}
		complete = complete && c != nil
	}
	if complete {
		d.setCondition(condition, metav1.ConditionTrue, addonv1alpha1.ReasonManifestApplied, addonv1alpha1.MessageManifestsApplied)
	} else if apimeta.IsStatusConditionFalse(d.object.Status.Conditions, condition) {
		d.removeCondition(condition)
	}
}

// firstRefusal names the first manifest of a work that was not applied, with its agent's
// message; it is "" if there is none.
func firstRefusal(w *workv1.ManifestWork) string {
	for i := range w.Status.ResourceStatus.Manifests {
		m := &w.Status.ResourceStatus.Manifests[i]
		if c := refusal(m); c != nil {
			of := strings.TrimPrefix(m.ResourceMeta.Namespace+"/"+m.ResourceMeta.Name, "/")
			return fmt.Sprintf(": %s %s of manifestwork %s/%s: %s", m.ResourceMeta.Kind, of, w.Namespace, w.Name, excerpt.Within(c.Message, maxRefusal))
		}
	}
	return ""
}

// setHostingValidity sets the condition that says whether the hosting cluster is a managed
// cluster of this hub, and what to do if it is not.
func (d *draft) setHostingValidity() {
	const kind = addonv1alpha1.ConditionHostingClusterValidity
	invalid := func(problem, fix string) {
		d.setCondition(kind, metav1.ConditionFalse, addonv1alpha1.ReasonHostingClusterInvalid, fmt.Sprintf(
			"hosting cluster %s is not a managed cluster of the hub: %s; %s, or change annotation %s",
			d.Hosting.Name, problem, fix, addonv1alpha1.AnnotationHostingClusterName))
	}
	switch {
	case d.Hosting == nil:
		d.removeCondition(kind)
	case d.open():
		d.setCondition(kind, metav1.ConditionTrue, addonv1alpha1.ReasonHostingClusterValid,
			fmt.Sprintf("hosting cluster %s is a managed cluster of the hub", d.Hosting.Name))
	case d.Hosting.Name == "":
		invalid("its name is empty", "name one")
	case d.Hosting.Cluster == nil:
		invalid("there is no ManagedCluster with this name", "join it under this name")
	case !d.valid():
		invalid("it is being deleted", "join it again when it is gone")
	default:
		invalid("it is not accepted, and what it has stays as it is", "accept it")
	}
}

func (d *draft) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	reconcile.SetCondition(&d.object.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: d.object.Generation,
	}, d.Now)
}

func (d *draft) removeCondition(kind string) {
	apimeta.RemoveStatusCondition(&d.object.Status.Conditions, kind)
}
