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

// What is told of a deletion that the contract lets wait in silence.
const (
	// ReasonHookAbandoned is that of the Event about a deletion that waits no longer.
	ReasonHookAbandoned = "HookAbandoned"
	// ReasonHostingManifestsRemaining goes with ConditionHostingManifestApplied False
	// while the hosting cluster removes what it has.
	ReasonHostingManifestsRemaining = "HostingManifestsRemaining"
)

// Names of feedback values of hooks; those but failed are well known to agents.
const (
	valueJobComplete = "JobComplete"
	valueJobFailed   = "JobFailed"
	valuePodPhase    = "PodPhase"
)

// hook is what runs in one place before an instance goes.
type hook struct {
	place
	finalizer string
	manifests []addonkit.Manifest
	cluster   *clusterv1.ManagedCluster
	live      *workv1.ManifestWork
	// blockers are why it has not completed.
	blockers []string
}

// end brings the deletion of an instance forward: hooks first, on both clusters at a
// time, then what is on the hosting cluster.
func (d *draft) end() error {
	d.release(deprecated...)
	if d.Cluster == nil {
		return d.abandon("there is no ManagedCluster " + d.AddOn.Namespace)
	}
	hooks := d.hooks()
	said := apimeta.IsStatusConditionTrue(d.AddOn.Status.Conditions, addonv1alpha1.ConditionHookManifestCompleted)
	var blockers, completed []string
	for i := range hooks {
		h := &hooks[i]
		if said {
			continue // all ran; their works may be gone already and are not made again
		}
		if err := d.run(h); err != nil {
			return err
		}
		blockers = append(blockers, h.blockers...)
		completed = append(completed, h.hook)
	}
	if at, ok := d.deadline(); ok && len(blockers) > 0 && !d.Now.Before(at) {
		return d.abandon(strings.Join(blockers, "; "))
	}
	d.sayHooks(completed, blockers)
	for _, h := range hooks {
		// The condition is written before the work goes, so that who comes next
		// knows that the hook ran.
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
	d.clean()
	return nil
}

// hooks are those that the instance still waits for.
func (d *draft) hooks() []hook {
	var out []hook
	if d.has(addonv1alpha1.FinalizerPreDelete) {
		p := d.managedPlace()
		out = append(out, hook{place: p, finalizer: addonv1alpha1.FinalizerPreDelete, manifests: d.managedHooks, cluster: d.Cluster, live: d.hookOf(p)})
	}
	if d.has(addonv1alpha1.FinalizerHostingPreDelete) {
		if !d.valid() {
			d.removeHooks()
			d.release(addonv1alpha1.FinalizerHostingPreDelete)
			return out
		}
		p := d.hostingPlace()
		out = append(out, hook{
			place:     p,
			finalizer: addonv1alpha1.FinalizerHostingPreDelete,
			manifests: d.hostingHooks,
			cluster:   d.Hosting.Cluster,
			live:      d.hookOf(p),
		})
	}
	return out
}

// run brings the work of a hook to its cluster and looks what keeps it.
func (d *draft) run(h *hook) error {
	if d.unrendered != "" {
		h.blockers = []string{"its hooks cannot be rendered: " + d.unrendered}
		return nil
	}
	if len(h.manifests) == 0 {
		return nil
	}
	if h.live != nil && h.owner != nil && !metav1.IsControlledBy(h.live, d.AddOn) {
		// It ran for an earlier instance of the name.
		d.remove(h.live)
		h.blockers = []string{fmt.Sprintf("manifestwork %s/%s is that of an earlier instance and must go first", h.namespace, h.hook)}
		return nil
	}
	want := h.make(h.hook, h.manifests, MergeConfigs(hookConfigs(h.manifests), d.Configs))
	want.Spec.DeleteOption = deleteOption(h.manifests)
	if err := d.write(h.live, want); err != nil {
		return fmt.Errorf("encoding manifestwork %s/%s: %w", want.Namespace, want.Name, err)
	}
	h.blockers = h.judge()
	if why := trouble(h.cluster); len(h.blockers) > 0 && why != "" {
		h.blockers = append(h.blockers, why)
	}
	return nil
}

// judge tells why a hook has not completed; nothing when it has.
func (h *hook) judge() []string {
	if h.live == nil {
		return []string{fmt.Sprintf("manifestwork %s/%s is being made", h.namespace, h.hook)}
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

// incomplete tells why one hook has not completed.
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

// hookConfigs ask for what hooks say of themselves.
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

// sayHooks tells how far hooks are; nothing where there are none.
func (d *draft) sayHooks(completed, blockers []string) {
	const kind = addonv1alpha1.ConditionHookManifestCompleted
	switch {
	case len(blockers) > 0:
		text := "hook manifest is not completed: " + strings.Join(blockers, "; ")
		if at, ok := d.deadline(); ok {
			text += "; it is given up at " + at.UTC().Format(time.RFC3339)
		}
		d.say(kind, metav1.ConditionFalse, addonv1alpha1.ReasonHookNotCompleted, text)
	case len(completed) > 0:
		d.say(kind, metav1.ConditionTrue, addonv1alpha1.ReasonHookCompleted, fmt.Sprintf("hook manifestWork %s is completed.", strings.Join(completed, ", ")))
	}
}

// update keeps the works of an instance current while its hooks run: they may need
// what is deployed.
func (d *draft) update() error {
	if d.unrendered != "" || !d.ready() || d.Cluster.DeletionTimestamp != nil {
		return nil
	}
	if err := d.deployManaged(); err != nil || !d.open() {
		return err
	}
	return d.deployHosting()
}

// clean removes what is on the hosting cluster; the instance waits until it is gone.
func (d *draft) clean() {
	if !d.has(addonv1alpha1.FinalizerHostingManifests) {
		return
	}
	deployed, _ := d.onHosting()
	d.remove(deployed...)
	at, ends := d.deadline()
	if len(deployed) == 0 || (d.Hosting != nil && !d.valid()) || (ends && !d.Now.Before(at)) {
		if len(deployed) > 0 && d.valid() {
			d.tell("Hosting cluster " + d.Hosting.Name + " has not removed " + names(deployed))
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
	d.say(addonv1alpha1.ConditionHostingManifestApplied, metav1.ConditionFalse, ReasonHostingManifestsRemaining, text)
	d.wait()
}

// abandon lets an instance go whose hooks did not complete, and tells who kept it.
func (d *draft) abandon(why string) error {
	deployed, _ := d.onHosting()
	d.plan.Writes = nil
	if d.has(addonv1alpha1.FinalizerPreDelete) || d.has(addonv1alpha1.FinalizerHostingPreDelete) {
		d.say(addonv1alpha1.ConditionHookManifestCompleted, metav1.ConditionFalse, addonv1alpha1.ReasonHookNotCompleted, "hook manifest is given up: "+why)
		d.tell("The add-on goes though its hooks did not complete: " + why)
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

func (d *draft) tell(message string) {
	d.plan.Events = append(d.plan.Events, reconcile.Event{Type: corev1.EventTypeWarning, Reason: ReasonHookAbandoned, Message: message, Once: true})
}

// wait comes again at the deadline, and sooner where the add-on is to be asked again.
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
