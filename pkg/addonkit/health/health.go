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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// lookedAt follows the message about an add-on of which nothing is probed.
const lookedAt = " Only the applied manifests were checked: there is nothing to probe."

// State is everything that a decision needs.
type State struct {
	// Instance is the add-on on its cluster, as it was before the decision.
	addonkit.Instance
	// Health is how the add-on's health is read.
	Health addonkit.Health
	// Manifests are what the inspected Works deploy; in hosted mode these are the works on
	// the hosting cluster.
	Manifests []addonkit.Manifest
	Works     []*workv1.ManifestWork
	// Now is the time of the decision.
	Now time.Time
}

// ModeOf returns where the API says that such a health comes from; empty if that is left as it is.
func ModeOf(h addonkit.Health) addonv1alpha1.HealthCheckMode {
	switch h.Mode {
	case addonkit.HealthLease:
		return addonv1alpha1.HealthCheckModeLease
	case addonkit.HealthWork, addonkit.HealthDeployments, addonkit.HealthWorkloads, addonkit.HealthNone:
		return addonv1alpha1.HealthCheckModeCustomized
	}
	return ""
}

// Set writes the health mode and condition to into, which is a copy that becomes the object
// of a plan. What health does not decide stays as it is.
func Set(s State, into *addonv1alpha1.ManagedClusterAddOn) {
	mode := ModeOf(s.Health)
	if mode == "" {
		return
	}
	into.Status.HealthCheck.Mode = mode
	if !isDeployed(s.AddOn) && !isDeployed(into) {
		return
	}
	if c := s.condition(); c != nil {
		c.Type, c.ObservedGeneration = addonv1alpha1.ConditionAvailable, s.AddOn.Generation
		reconcile.SetCondition(&into.Status.Conditions, *c, s.Now)
	}
}

// isDeployed reports whether the works of an instance have been answered. That answer and
// the health which follows from it are one write.
func isDeployed(a *addonv1alpha1.ManagedClusterAddOn) bool {
	return apimeta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionManifestApplied) != nil
}

// condition returns the condition to write, or nil for none.
func (s State) condition() *metav1.Condition {
	if s.Health.Mode == addonkit.HealthLease || s.Health.Mode == addonkit.HealthNone || s.lost() {
		return nil
	}
	if len(s.Manifests) > 0 || len(s.Works) > 0 {
		if c := s.worksProblem(); c != nil {
			return c
		}
	}
	available := fmt.Sprintf(addonv1alpha1.MessageProbeAvailable, s.AddOn.Name)
	probes := probesOf(s.Health, s.Manifests)
	switch {
	case len(probes) == 0 && s.Health.Mode == addonkit.HealthWork:
		return newCondition(metav1.ConditionTrue, addonv1alpha1.ReasonWorkApplied, addonv1alpha1.MessageWorkApplied+lookedAt)
	case len(probes) == 0:
		return newCondition(metav1.ConditionTrue, addonv1alpha1.ReasonProbeAvailable, available+lookedAt)
	}
	results, missing := s.results(probes)
	if len(missing) > 0 {
		return newCondition(metav1.ConditionUnknown, addonv1alpha1.ReasonNoProbeResult, addonv1alpha1.MessageNoProbeResult+": "+strings.Join(missing, ", "))
	}
	if err := s.check(results); err != nil {
		return newCondition(metav1.ConditionFalse, addonv1alpha1.ReasonProbeUnavailable, fmt.Sprintf(addonv1alpha1.MessageProbeUnavailable, err))
	}
	return newCondition(metav1.ConditionTrue, addonv1alpha1.ReasonProbeAvailable, available)
}

// lost reports whether the state of the cluster is unknown: the hub then sets the condition
// of all its add-ons.
func (s State) lost() bool {
	return apimeta.IsStatusConditionPresentAndEqual(s.Cluster.Status.Conditions, clusterv1.ConditionAvailable, metav1.ConditionUnknown)
}

func newCondition(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Status: status, Reason: reason, Message: message}
}

// worksProblem returns what keeps the works from answering, or nil.
func (s State) worksProblem() *metav1.Condition {
	if len(s.Works) == 0 {
		return newCondition(metav1.ConditionUnknown, addonv1alpha1.ReasonWorkNotFound, addonv1alpha1.MessageWorkNotFound)
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
	return newCondition(worst, addonv1alpha1.ReasonWorkNotApplied, addonv1alpha1.MessageWorkNotApplied)
}

// probesOf returns the objects to probe and the values to read of them.
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
		if isProbed(m, h.Mode) {
			out = append(out, addonkit.Probe{Resource: m.Resource(), Rules: []workv1.FeedbackRule{{Type: workv1.FeedbackRuleTypeWellKnownStatus}}})
		}
	}
	return out
}

// isProbed reports whether a manifest is a DaemonSet, if the mode reads them, or a Deployment
// that should have replicas.
func isProbed(m addonkit.Manifest, mode addonkit.HealthMode) bool {
	if m.Group != "apps" || m.Kind != "Deployment" {
		return m.Group == "apps" && m.Kind == "DaemonSet" && mode == addonkit.HealthWorkloads
	}
	replicas, found, err := unstructured.NestedInt64(m.Object.Object, "spec", "replicas")
	return !found || err != nil || replicas != 0
}

// Configs returns the manifest options that make the works report the probed values.
func Configs(h addonkit.Health, manifests []addonkit.Manifest) []workv1.ManifestConfigOption {
	var out []workv1.ManifestConfigOption
	for _, p := range probesOf(h, manifests) {
		out = append(out, workv1.ManifestConfigOption{ResourceIdentifier: p.Resource, FeedbackRules: p.Rules})
	}
	return out
}

// results returns what the works report of probed objects, and the probes without an
// answer.
func (s State) results(probes []addonkit.Probe) (out []addonkit.Result, missing []string) {
	for _, p := range probes {
		answered := false
		for _, w := range s.Works {
			for _, m := range w.Status.ResourceStatus.Manifests {
				meta := m.ResourceMeta
				at := workv1.ResourceIdentifier{Group: meta.Group, Resource: meta.Resource, Namespace: meta.Namespace, Name: meta.Name}
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

// show formats a resource as "deployments.apps default/web".
func show(r workv1.ResourceIdentifier) string {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}.String() + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
}

// check evaluates the values; an error is why the add-on is not available.
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
