// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Reasons of events on a ClusterManagementAddOn.
const (
	eventStarted   = "RolloutStarted"
	eventStuck     = "RolloutStuck"
	eventResumed   = "RolloutResumed"
	eventRolledOut = "RolledOut"
)

const (
	// maxEvents is the most events of a pass: an add-on may have many placements.
	maxEvents = 10
	// maxNames is the most clusters and configurations that an event names.
	maxNames = 5
	// shortHash is the length of a hash prefix by which users can tell contents apart.
	shortHash = 8
)

// Parts of the condition's message for cases without clusters or faults.
const (
	nobody  = "configured addons 0/0 "
	allGood = ", 0 failed 0 timeout."
)

// counts holds the numbers of clusters of one placement.
type counts struct {
	done, under, total int
	late               []string
}

// recordEvents adds events for what changed since the last report on a placement: a rollout
// of other configurations starts, is stuck, or ends. It compares with the stored status, so
// that each change is reported once, even after a restart of the process; single clusters
// that join or leave cause no event.
func (d *delivery) recordEvents(i int, n counts, is metav1.Condition) {
	p, after := d.Placements[i], d.progressions[i]
	before := config.Stored(d.AddOn, after.PlacementRef)
	was := metav1.Condition{Message: nobody + allGood}
	if c := apimeta.FindStatusCondition(before.Conditions, addonv1alpha1.ConditionProgressing); c != nil {
		was = *c
	}
	where, configs := fmt.Sprintf("placement %s/%s", p.Namespace, p.Name), after.ConfigReferences
	// same reports whether what is desired is what was desired, or known to be good, before.
	same := func(of func(addonv1alpha1.InstallConfigReference) *addonv1alpha1.ConfigSpecHash) bool {
		return slices.EqualFunc(before.ConfigReferences, configs, func(b, a addonv1alpha1.InstallConfigReference) bool {
			return b.ConfigGroupResource == a.ConfigGroupResource && ptr.Equal(of(b), a.DesiredConfig)
		})
	}
	desired := func(r addonv1alpha1.InstallConfigReference) *addonv1alpha1.ConfigSpecHash { return r.DesiredConfig }
	knownGood := func(r addonv1alpha1.InstallConfigReference) *addonv1alpha1.ConfigSpecHash {
		return r.LastKnownGoodConfig
	}
	if text := d.trouble(i); (!p.Found || p.Invalid != nil) && !strings.HasSuffix(was.Message, text) {
		d.event(corev1.EventTypeWarning, eventStuck, strings.TrimSpace(text))
	}
	if n.total > 0 && len(configs) > 0 && (strings.Contains(was.Message, nobody) || !same(desired)) {
		d.event(corev1.EventTypeNormal, eventStarted, fmt.Sprintf("Rolling out %s to %s of %s", described(configs), clusters(n.total), where))
	}
	if text := d.lateness(i, n, was.Message); text != "" {
		d.event(corev1.EventTypeWarning, eventStuck, text)
	}
	if is.Reason == addonv1alpha1.ReasonCompleted && len(configs) > 0 && !same(knownGood) {
		d.event(corev1.EventTypeNormal, eventRolledOut, fmt.Sprintf("%s of %s have %s", clusters(n.total), where, described(configs)))
	}
}

// event adds an event, within the limit.
func (d *delivery) event(kind, reason, message string) {
	if len(d.events) < maxEvents {
		d.events = append(d.events, reconcile.Event{Type: kind, Reason: reason, Message: message, After: reconcile.Status})
	}
}

// lateness returns a message about clusters that timed out, with the cause of the first one;
// empty if the previous message has already reported any.
func (d *delivery) lateness(i int, n counts, before string) string {
	breach := d.plans[i].Breach && !strings.HasSuffix(before, addonv1alpha1.MessageRolloutStopped)
	if len(n.late) == 0 || !breach && !strings.Contains(before, allGood) {
		return ""
	}
	p := d.Placements[i]
	text := fmt.Sprintf("%d of %s of placement %s/%s ran out of time: %s", len(n.late), clusters(n.total), p.Namespace, p.Name, listed(n.late))
	if first := apimeta.FindStatusCondition(d.members[n.late[0]].conditions, addonv1alpha1.ConditionProgressing); first != nil {
		text += fmt.Sprintf("; %s: %s", n.late[0], first.Message)
	}
	if d.plans[i].Breach {
		text += "; these are more than maxFailures allows, so no further cluster is started"
	}
	return text
}

func clusters(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

// listed joins the first names of a list.
func listed(names []string) string {
	if len(names) > maxNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
	}
	return strings.Join(names, ", ")
}

// described joins configurations, each with a short hash of its content.
func described(refs []addonv1alpha1.InstallConfigReference) string {
	var out []string
	for _, r := range refs {
		d := r.DesiredConfig
		if d == nil {
			continue
		}
		hash := cmp.Or(d.SpecHash[:min(shortHash, len(d.SpecHash))], "not found")
		out = append(out, fmt.Sprintf("%s %s (%s)", r.Resource, strings.TrimPrefix(d.Namespace+"/"+d.Name, "/"), hash))
	}
	return listed(out)
}
