// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// lookedAt follows a message about an add-on of which nothing is probed.
const lookedAt = " Only whether its manifests are applied was looked at: it has nothing to probe."

// State is everything that a decision needs.
type State struct {
	// Instance is the add-on on its cluster; only what is there before the decision
	// is read of it.
	addonkit.Instance
	// Health is what the add-on says of itself.
	Health addonkit.Health
	// Manifests are those that the inspected works deploy, Works these works: in
	// hosted mode those of the hosting cluster.
	Manifests []addonkit.Manifest
	Works     []*workv1.ManifestWork
	// Now is the time of the decision.
	Now time.Time
}

// Set writes mode and condition of the health into an instance: a copy that becomes
// the object of a plan. What is not to be said is left as it is.
func Set(s State, into *addonv1alpha1.ManagedClusterAddOn) {
	mode, ok := modeOf(s.Health)
	if !ok {
		return
	}
	into.Status.HealthCheck.Mode = mode
	if c := s.judge(); c != nil {
		c.Type, c.ObservedGeneration = addonv1alpha1.ConditionAvailable, s.AddOn.Generation
		reconcile.SetCondition(&into.Status.Conditions, *c, s.Now)
	}
}

// modeOf is what the instance says of its health; false to leave it.
func modeOf(h addonkit.Health) (addonv1alpha1.HealthCheckMode, bool) {
	switch h.Mode {
	case addonkit.HealthLease:
		return addonv1alpha1.HealthCheckModeLease, true
	case addonkit.HealthWork, addonkit.HealthDeployments, addonkit.HealthWorkloads, addonkit.HealthNone:
		return addonv1alpha1.HealthCheckModeCustomized, true
	}
	return "", false
}

// judge is the condition to write; nil for none.
func (s State) judge() *metav1.Condition {
	if s.Health.Mode == addonkit.HealthLease || s.Health.Mode == addonkit.HealthNone || s.lost() {
		return nil
	}
	if apimeta.FindStatusCondition(s.AddOn.Status.Conditions, addonv1alpha1.ConditionManifestApplied) == nil {
		return nil
	}
	if len(s.Manifests) > 0 || len(s.Works) > 0 {
		if c := s.works(); c != nil {
			return c
		}
	}
	probes := s.probes()
	switch {
	case len(probes) == 0 && s.Health.Mode == addonkit.HealthWork:
		return says(metav1.ConditionTrue, addonv1alpha1.ReasonWorkApplied, addonv1alpha1.MessageWorkApplied+lookedAt)
	case len(probes) == 0:
		return says(metav1.ConditionTrue, addonv1alpha1.ReasonProbeAvailable, fmt.Sprintf(addonv1alpha1.MessageProbeAvailable, s.AddOn.Name)+lookedAt)
	}
	results, missing := s.results(probes)
	if len(missing) > 0 {
		return says(metav1.ConditionUnknown, addonv1alpha1.ReasonNoProbeResult, addonv1alpha1.MessageNoProbeResult+": "+strings.Join(missing, ", "))
	}
	if err := s.check(results); err != nil {
		return says(metav1.ConditionFalse, addonv1alpha1.ReasonProbeUnavailable, fmt.Sprintf(addonv1alpha1.MessageProbeUnavailable, err))
	}
	return s.available()
}

// lost tells whether nobody knows how the cluster is: the hub says so of all its
// add-ons.
func (s State) lost() bool {
	c := apimeta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ConditionAvailable)
	return c != nil && c.Status == metav1.ConditionUnknown
}

func says(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Status: status, Reason: reason, Message: message}
}

func (s State) available() *metav1.Condition {
	return says(metav1.ConditionTrue, addonv1alpha1.ReasonProbeAvailable, fmt.Sprintf(addonv1alpha1.MessageProbeAvailable, s.AddOn.Name))
}

// works tells what keeps the works from answering; nil for nothing.
func (s State) works() *metav1.Condition {
	if len(s.Works) == 0 {
		return says(metav1.ConditionUnknown, addonv1alpha1.ReasonWorkNotFound, addonv1alpha1.MessageWorkNotFound)
	}
	worst := metav1.ConditionTrue
	for _, w := range s.Works {
		c := apimeta.FindStatusCondition(w.Status.Conditions, workv1.ConditionApplied)
		if c != nil && c.ObservedGeneration != 0 && c.ObservedGeneration < w.Generation {
			c = nil // it speaks of what the work was before
		}
		switch {
		case c != nil && c.Status == metav1.ConditionTrue:
		case c != nil && c.Status == metav1.ConditionFalse:
			worst = metav1.ConditionFalse
		case worst == metav1.ConditionTrue:
			worst = metav1.ConditionUnknown
		}
	}
	if worst == metav1.ConditionTrue {
		return nil
	}
	return says(worst, addonv1alpha1.ReasonWorkNotApplied, addonv1alpha1.MessageWorkNotApplied)
}

// probes are the objects to look at and what is read of them.
func (s State) probes() []addonkit.Probe { return probesOf(s.Health, s.Manifests) }

func probesOf(h addonkit.Health, manifests []addonkit.Manifest) []addonkit.Probe {
	switch h.Mode {
	case addonkit.HealthWork:
		return h.Probes
	case addonkit.HealthDeployments, addonkit.HealthWorkloads:
	default:
		return nil
	}
	var out []addonkit.Probe
	for _, m := range manifests {
		if deployment(m) || (h.Mode == addonkit.HealthWorkloads && daemonSet(m)) {
			out = append(out, addonkit.Probe{Resource: m.Resource(), Rules: []workv1.FeedbackRule{{Type: workv1.FeedbackRuleTypeWellKnownStatus}}})
		}
	}
	return out
}

// deployment tells whether a manifest is a Deployment that shall run.
func deployment(m addonkit.Manifest) bool {
	if m.Group != "apps" || m.Kind != "Deployment" {
		return false
	}
	replicas, found, err := unstructured.NestedInt64(m.Object.Object, "spec", "replicas")
	return !found || err != nil || replicas != 0
}

func daemonSet(m addonkit.Manifest) bool { return m.Group == "apps" && m.Kind == "DaemonSet" }

// Configs ask the works for the values by which health is told.
func Configs(h addonkit.Health, manifests []addonkit.Manifest) []workv1.ManifestConfigOption {
	var out []workv1.ManifestConfigOption
	for _, p := range probesOf(h, manifests) {
		out = append(out, workv1.ManifestConfigOption{ResourceIdentifier: p.Resource, FeedbackRules: p.Rules})
	}
	return out
}

// results are what works say of probed objects, and the probes that nothing answers.
func (s State) results(probes []addonkit.Probe) (out []addonkit.Result, missing []string) {
	for _, p := range probes {
		answered := false
		for _, w := range s.Works {
			for _, m := range w.Status.ResourceStatus.Manifests {
				at := workv1.ResourceIdentifier{
					Group:     m.ResourceMeta.Group,
					Resource:  m.ResourceMeta.Resource,
					Namespace: m.ResourceMeta.Namespace,
					Name:      m.ResourceMeta.Name,
				}
				if len(m.StatusFeedback.Values) == 0 || !addonkit.Matches(p.Resource, at) {
					continue
				}
				answered = true
				if !slices.ContainsFunc(out, func(r addonkit.Result) bool { return r.Resource == at }) {
					out = append(out, addonkit.Result{Resource: at, Feedback: m.StatusFeedback})
				}
			}
		}
		if !answered {
			missing = append(missing, show(p.Resource))
		}
	}
	return out, missing
}

// show is "deployments.apps default/web".
func show(r workv1.ResourceIdentifier) string {
	kind, name := r.Resource, r.Name
	if r.Group != "" {
		kind += "." + r.Group
	}
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return kind + " " + name
}

// check judges the values.
func (s State) check(results []addonkit.Result) error {
	if s.Health.Mode == addonkit.HealthWork {
		if s.Health.Check == nil {
			return nil
		}
		return s.Health.Check(results, s.Instance)
	}
	for _, r := range results {
		value := func(name string) int64 {
			for _, v := range r.Feedback.Values {
				if v.Name == name && v.FieldValue.Integer != nil {
					return *v.FieldValue.Integer
				}
			}
			return 0
		}
		switch r.Resource.Resource {
		case "deployments":
			if value("Replicas") > 0 && value("ReadyReplicas") < 1 {
				return fmt.Errorf("%s has no ready replica of %d", show(r.Resource), value("Replicas"))
			}
		case "daemonsets":
			if ready, want := value("NumberReady"), value("DesiredNumberScheduled"); ready != want {
				return fmt.Errorf("%s has %d ready pods of %d", show(r.Resource), ready, want)
			}
		}
	}
	return nil
}
