// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Reasons for reporting a wait for which the contract has none.
const (
	// ReasonHookAbandoned is that of the Event about a deletion that stops waiting.
	ReasonHookAbandoned = "HookAbandoned"
	// ReasonHostingManifestsRemaining goes with ConditionHostingManifestApplied False while
	// the hosting cluster removes its objects.
	ReasonHostingManifestsRemaining = "HostingManifestsRemaining"
)

// Names of the feedback values of hooks; agents know all but JobFailed.
const (
	valueJobComplete = "JobComplete"
	valueJobFailed   = "JobFailed"
	valuePodPhase    = "PodPhase"
)

// hook is what runs in one place before an instance is removed.
type hook struct {
	place
	finalizer string
	manifests []addonkit.Manifest
	cluster   *clusterv1.ManagedCluster
	live      *workv1.ManifestWork
	// blockers are why it has not completed.
	blockers []string
}

// advanceDeletion moves the deletion of an instance forward: first the hooks, on both
// clusters at the same time, then the cleanup of the hosting cluster.
func (d *draft) advanceDeletion() error {
	d.release(deprecated...)
	if d.Cluster == nil {
		return d.abandon("there is no ManagedCluster " + d.AddOn.Namespace)
	}
	hooks := d.hooks()
	// Then all have run; their works may be gone already and are not created again.
	said := apimeta.IsStatusConditionTrue(d.AddOn.Status.Conditions, addonv1alpha1.ConditionHookManifestCompleted)
	var blockers, completed []string
	for i := 0; i < len(hooks) && !said; i++ {
		h := &hooks[i]
		if err := d.run(h); err != nil {
			return err
		}
		blockers = append(blockers, h.blockers...)
		completed = append(completed, h.hook)
	}
	if at, ok := d.deadline(); ok && len(blockers) > 0 && !d.Now.Before(at) {
		return d.abandon(strings.Join(blockers, "; "))
	}
	d.setHooksCompleted(completed, blockers)
	for _, h := range hooks {
		// Write the condition before deleting the work, so that the next pass knows that
		// the hook has run.
		if h.finalizer == addonv1alpha1.FinalizerPreDelete && len(h.blockers) == 0 {
			d.release(h.finalizer)
		}
		if h.finalizer == addonv1alpha1.FinalizerHostingPreDelete && said {
			d.removeHooks()
			d.release(h.finalizer)
		}
	}
	if len(blockers) > 0 || d.has(addonv1alpha1.FinalizerHostingPreDelete) {
		d.wait()
		return d.update()
	}
	d.cleanHosting()
	return nil
}

// hooks returns those that the instance still waits for.
func (d *draft) hooks() []hook {
	var out []hook
	add := func(p place, finalizer string, manifests []addonkit.Manifest, cluster *clusterv1.ManagedCluster) {
		out = append(out, hook{place: p, finalizer: finalizer, manifests: manifests, cluster: cluster, live: d.hookOf(p)})
	}
	if d.has(addonv1alpha1.FinalizerPreDelete) {
		add(d.managedPlace(), addonv1alpha1.FinalizerPreDelete, d.managedHooks, d.Cluster)
	}
	switch {
	case !d.has(addonv1alpha1.FinalizerHostingPreDelete):
	case d.valid():
		add(d.hostingPlace(), addonv1alpha1.FinalizerHostingPreDelete, d.hostingHooks, d.Hosting.Cluster)
	default:
		d.removeHooks()
		d.release(addonv1alpha1.FinalizerHostingPreDelete)
	}
	return out
}

// run brings the work of a hook to its cluster and finds out what it waits for.
func (d *draft) run(h *hook) error {
	if d.unrendered != "" {
		h.blockers = []string{"its hooks cannot be rendered: " + d.unrendered}
		return nil
	}
	if len(h.manifests) == 0 {
		return nil
	}
	if h.live != nil && h.owner != nil && !metav1.IsControlledBy(h.live, d.AddOn) {
		// It belongs to an earlier instance of the same name.
		d.remove(h.live)
		h.blockers = []string{fmt.Sprintf("manifestwork %s/%s belongs to an earlier instance and must be removed first", h.namespace, h.hook)}
		return nil
	}
	want := h.newWork(h.hook, h.manifests, MergeConfigs(hookConfigs(h.manifests), d.Configs))
	want.Spec.DeleteOption = deleteOption(h.manifests)
	if err := d.write(h.live, want); err != nil {
		return fmt.Errorf("encoding manifestwork %s/%s: %w", want.Namespace, want.Name, err)
	}
	h.blockers = h.findBlockers()
	if why := trouble(h.cluster); len(h.blockers) > 0 && why != "" {
		h.blockers = append(h.blockers, why)
	}
	return nil
}

// findBlockers returns why a hook has not completed, or nothing if it has.
func (h *hook) findBlockers() []string {
	if h.live == nil {
		return []string{fmt.Sprintf("manifestwork %s/%s is being created", h.namespace, h.hook)}
	}
	var out []string
	for _, m := range h.manifests {
		if why := incomplete(m, h.live); why != "" {
			out = append(out, fmt.Sprintf("%s of cluster %s %s", m.ID, h.namespace, why))
		}
	}
	if c := applied(h.live, workv1.ConditionAvailable); len(out) == 0 && (c == nil || c.Status != metav1.ConditionTrue) {
		out = append(out, fmt.Sprintf("manifestwork %s/%s is not available", h.namespace, h.hook))
	}
	return out
}

// incomplete returns why one hook manifest has not completed, or "".
func incomplete(m addonkit.Manifest, w *workv1.ManifestWork) string {
	values := map[string]string{}
	for _, s := range w.Status.ResourceStatus.Manifests {
		if s.ResourceMeta.Kind != m.Kind || s.ResourceMeta.Group != m.Group || s.ResourceMeta.Namespace != m.Namespace || s.ResourceMeta.Name != m.Name {
			continue
		}
		for _, v := range s.StatusFeedback.Values {
			if v.FieldValue.String != nil {
				values[v.Name] = *v.FieldValue.String
			}
		}
	}
	switch {
	case values[valueJobComplete] == string(corev1.ConditionTrue) && m.Kind == "Job",
		values[valuePodPhase] == string(corev1.PodSucceeded) && m.Kind == "Pod":
		return ""
	case values[valueJobFailed] == string(corev1.ConditionTrue), values[valuePodPhase] == string(corev1.PodFailed):
		return "failed; delete it there to run it again"
	}
	return "has not completed"
}

// hookConfigs returns the manifest options that make agents report on hooks.
func hookConfigs(manifests []addonkit.Manifest) []workv1.ManifestConfigOption {
	var out []workv1.ManifestConfigOption
	for _, m := range manifests {
		rules := []workv1.FeedbackRule{{Type: workv1.FeedbackRuleTypeWellKnownStatus}}
		if m.Kind == "Job" {
			rules = append(rules, workv1.FeedbackRule{Type: workv1.FeedbackRuleTypeJSONPaths, JSONPaths: []workv1.JSONPath{
				{Name: valueJobFailed, Path: `.status.conditions[?(@.type=="Failed")].status`},
			}})
		}
		out = append(out, workv1.ManifestConfigOption{ResourceIdentifier: m.Resource(), FeedbackRules: rules})
	}
	return out
}

// setHooksCompleted sets the condition about the progress of hooks, if there are any.
func (d *draft) setHooksCompleted(completed, blockers []string) {
	const kind = addonv1alpha1.ConditionHookManifestCompleted
	switch {
	case len(blockers) > 0:
		text := "hook manifest is not completed: " + strings.Join(blockers, "; ")
		if at, ok := d.deadline(); ok {
			text += "; it is given up at " + at.UTC().Format(time.RFC3339)
		}
		d.setCondition(kind, metav1.ConditionFalse, addonv1alpha1.ReasonHookNotCompleted, text)
	case len(completed) > 0:
		d.setCondition(kind, metav1.ConditionTrue, addonv1alpha1.ReasonHookCompleted,
			fmt.Sprintf("hook manifestWork %s is completed.", strings.Join(completed, ", ")))
	}
}

// update keeps the works of an instance current while its hooks run, which may need what is
// deployed.
func (d *draft) update() error {
	if d.unrendered != "" || !d.ready() || d.Cluster.DeletionTimestamp != nil {
		return nil
	}
	if err := d.deployManaged(); err != nil || !d.open() {
		return err
	}
	return d.deployHosting()
}

// cleanHosting removes what is on the hosting cluster; the instance waits until it is gone.
func (d *draft) cleanHosting() {
	if !d.has(addonv1alpha1.FinalizerHostingManifests) {
		return
	}
	deployed, _ := d.onHosting()
	d.remove(deployed...)
	at, ends := d.deadline()
	if len(deployed) == 0 || (d.Hosting != nil && !d.valid()) || (ends && !d.Now.Before(at)) {
		if len(deployed) > 0 && d.valid() {
			d.warn("Hosting cluster " + d.Hosting.Name + " has not removed " + names(deployed))
		}
		d.release(addonv1alpha1.FinalizerHostingManifests)
		return
	}
	text := "waiting until these are removed: " + names(deployed)
	if d.valid() && trouble(d.Hosting.Cluster) != "" {
		text += "; " + trouble(d.Hosting.Cluster)
	}
	if ends {
		text += "; it is given up at " + at.UTC().Format(time.RFC3339)
	}
	d.setCondition(addonv1alpha1.ConditionHostingManifestApplied, metav1.ConditionFalse, ReasonHostingManifestsRemaining, text)
	d.wait()
}

// abandon releases an instance whose hooks did not complete, and reports what held it.
func (d *draft) abandon(why string) error {
	deployed, _ := d.onHosting()
	d.plan.Writes = nil
	if d.has(addonv1alpha1.FinalizerPreDelete) || d.has(addonv1alpha1.FinalizerHostingPreDelete) {
		d.setCondition(addonv1alpha1.ConditionHookManifestCompleted, metav1.ConditionFalse, addonv1alpha1.ReasonHookNotCompleted, "hook manifest is given up: "+why)
		d.warn("The add-on is removed although its hooks did not complete: " + why)
	}
	d.remove(deployed...)
	d.removeHooks()
	d.release(ours...)
	return nil
}

func (d *draft) removeHooks() {
	_, hooks := d.onHosting()
	d.remove(hooks...)
}

func (d *draft) warn(message string) {
	d.plan.Events = append(d.plan.Events, reconcile.Event{Type: corev1.EventTypeWarning, Reason: ReasonHookAbandoned, Message: message, Once: true})
}

// wait requeues at the deadline, or sooner if the add-on has to be called again.
func (d *draft) wait() {
	if at, ok := d.deadline(); ok {
		d.plan.RequeueAfter = max(at.Sub(d.Now), time.Second)
	}
	if d.unrendered != "" && (d.plan.RequeueAfter == 0 || d.plan.RequeueAfter > addonkit.RetryDelay) {
		d.plan.RequeueAfter = addonkit.RetryDelay
	}
}

func names(works []*workv1.ManifestWork) string {
	var out []string
	for _, w := range works {
		out = append(out, "manifestwork "+w.Namespace+"/"+w.Name)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
