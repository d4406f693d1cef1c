// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Messages of conditions.
const (
	configured    = "Configurations configured"
	notConfigured = "Configurations updated and not configured yet"
	progressing   = "progressing... "
	completed     = "completed with no errors."
)

// member is an instance with its next status.
type member struct {
	Instance
	known      config.Lookup
	refs       []addonv1alpha1.ConfigReference
	conditions []metav1.Condition
}

// newMember returns the member of an instance, with the progress of its given configurations
// as its works show it.
func newMember(one Instance, known config.Lookup, now time.Time) *member {
	m := &member{Instance: one, refs: slices.Clone(one.References), conditions: slices.Clone(one.Conditions)}
	m.known = func(c addonv1alpha1.AddOnConfig) (config.Content, bool) {
		if config.Overridden(m.Configs, c.ConfigGroupResource) && !m.supports(c.ConfigGroupResource) {
			return config.Content{}, false // nobody sets its hash
		}
		return known(c)
	}
	m.updateProgress(now, false)
	return m
}

// supports reports whether the add-on supports a kind. It may support any while its status
// lists none.
func (m *member) supports(kind addonv1alpha1.ConfigGroupResource) bool {
	return len(m.Supported) == 0 || slices.Contains(m.Supported, kind)
}

// state returns how far the rollout is on the cluster.
func (m *member) state(desired []config.Desired) rollout.Cluster {
	out := rollout.Cluster{Name: m.Cluster, Status: rollout.Progressing}
	if c := apimeta.FindStatusCondition(m.conditions, addonv1alpha1.ConditionProgressing); c != nil {
		out.Since = c.LastTransitionTime.Time
	}
	switch {
	case !config.Given(m.refs, desired):
		out.Status = rollout.ToApply
	case config.Applied(m.refs, nil):
		out.Status = rollout.Succeeded
	}
	return out
}

// assign gives the instance the desired configurations. If they are new, its deadline counts
// from now.
func (m *member) assign(desired []config.Desired, now time.Time) {
	news := !config.Given(m.refs, desired)
	m.refs = config.References(m.refs, desired)
	m.setConfigured(metav1.ConditionTrue, addonv1alpha1.ReasonConfigurationsConfigured, configured, now)
	if news {
		m.updateProgress(now, true)
	}
}

// hold lets the instance wait with the configurations it has.
func (m *member) hold(now time.Time) {
	m.setConfigured(metav1.ConditionFalse, addonv1alpha1.ReasonConfigurationsNotConfigured, notConfigured, now)
}

func (m *member) setConfigured(status metav1.ConditionStatus, reason, message string, now time.Time) {
	m.setCondition(metav1.Condition{Type: addonv1alpha1.ConditionConfigured, Status: status, Reason: reason, Message: message}, now, false)
}

// isDone reports whether all configurations that the cluster does not override are applied.
func (m *member) isDone() bool {
	return config.Applied(m.refs, func(k addonv1alpha1.ConfigGroupResource) bool { return !config.Overridden(m.Configs, k) })
}

// updateProgress sets Progressing, and records what was applied. With again, the time of the
// condition restarts.
func (m *member) updateProgress(now time.Time, again bool) {
	c := m.verdict()
	if c.Reason == addonv1alpha1.ReasonCompleted {
		m.refs = slices.Clone(m.refs)
		for i := range m.refs {
			m.refs[i].LastAppliedConfig = m.refs[i].DesiredConfig
		}
	}
	m.setCondition(c, now, again)
}

func (m *member) verdict() metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: addonv1alpha1.ConditionProgressing, Status: status, Reason: reason, Message: message}
	}
	for i, own := range m.Configs {
		if !slices.Contains(m.Supported, own.ConfigGroupResource) {
			return is(metav1.ConditionFalse, addonv1alpha1.ReasonConfigurationUnsupported, fmt.Sprintf(
				"Configuration with gvr %s/%s is not supported for this addon; remove it from spec.configs[%d], status.supportedConfigs lists what is",
				own.Group, own.Resource, i))
		}
	}
	says := func(kind string) bool { return apimeta.FindStatusCondition(m.conditions, kind) != nil }
	mark, complete := addonkit.Mark(m.refs)
	unlike := func(w instance.Work) bool { return !w.Readable || w.Mark != mark }
	switch {
	case !says(addonv1alpha1.ConditionManifestApplied):
		return is(metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForManifestApplied, "waiting for the condition "+addonv1alpha1.ConditionManifestApplied)
	case m.Annotations[addonv1alpha1.AnnotationHostingClusterName] != "" && !says(addonv1alpha1.ConditionHostingManifestApplied):
		return is(metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForHostingManifestApplied,
			"waiting for the condition "+addonv1alpha1.ConditionHostingManifestApplied)
	case len(m.Works) == 0:
		return is(metav1.ConditionTrue, addonv1alpha1.ReasonProgressing, progressing+"no addon works")
	case !complete || slices.ContainsFunc(m.Works, unlike):
		return is(metav1.ConditionTrue, addonv1alpha1.ReasonProgressing, progressing+"mca and work configs mismatch"+m.missing())
	case slices.ContainsFunc(m.Works, func(w instance.Work) bool { return !w.Ready }):
		return is(metav1.ConditionTrue, addonv1alpha1.ReasonProgressing, progressing+"work is not ready")
	}
	return is(metav1.ConditionFalse, addonv1alpha1.ReasonCompleted, completed)
}

// missing describes the configurations without a hash: they do not exist, or the add-on's
// controller does not read them.
func (m *member) missing() string {
	var out []string
	for _, r := range m.refs {
		if r.DesiredConfig == nil || r.DesiredConfig.SpecHash == "" {
			at := config.Referent(r)
			out = append(out, r.Resource+" "+strings.TrimPrefix(at.Namespace+"/"+at.Name, "/"))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "; not found, or not read by the add-on: " + strings.Join(out, ", ")
}

// setCondition sets a condition. Its transition time changes with the status and also with
// the reason: deadlines and soak times count from it.
func (m *member) setCondition(c metav1.Condition, now time.Time, again bool) {
	c.ObservedGeneration = m.Generation
	before := apimeta.FindStatusCondition(m.conditions, c.Type)
	again = again || before == nil || before.Reason != c.Reason
	reconcile.SetCondition(&m.conditions, c, now)
	if again {
		apimeta.FindStatusCondition(m.conditions, c.Type).LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	}
}

// patch returns the write that the instance needs, if any.
func (m *member) patch() (reconcile.Patch, bool) {
	status := map[string]any{}
	if !reflect.DeepEqual(m.refs, m.References) && len(m.refs)+len(m.References) > 0 {
		status["configReferences"] = m.refs
	}
	if !reflect.DeepEqual(m.conditions, m.Conditions) {
		status["conditions"] = m.conditions
	}
	return reconcile.Patch{
		Target: reconcile.Target{Resource: instance.Resource, Namespace: m.Cluster, Name: m.Name, UID: m.UID, Version: m.Version},
		Body:   map[string]any{"status": status}, Subresource: "status",
	}, len(status) > 0
}
