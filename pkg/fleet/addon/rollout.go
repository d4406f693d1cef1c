// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"fmt"
	"regexp"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// progressed matches the message of a progression: how many clusters have the configurations, how
// many get them, and how many did not succeed with them or not in time.
var progressed = regexp.MustCompile(`^selected clusters \d+\. configured addons \d+/\d+ .*?, \d+ failed \d+ timeout\.`)

// numbers matches the numbers in it.
var numbers = regexp.MustCompile(`\d+`)

// rollout sums up the progressions of an add-on.
type rollout struct {
	of      *addonv1alpha1.ClusterManagementAddOn
	counts  cluster.Rollout
	reached int
	// succeeded counts instances that have a configuration of a progression with success.
	succeeded int
}

// rolloutOf reads the progressions of an add-on; nil if none says how far it is.
func rolloutOf(a *addonv1alpha1.ClusterManagementAddOn) *rollout {
	out := &rollout{of: a}
	known, complete := false, true
	for i := range a.Status.InstallProgressions {
		c := apimeta.FindStatusCondition(a.Status.InstallProgressions[i].Conditions, addonv1alpha1.ConditionProgressing)
		if c == nil {
			continue
		}
		text := progressed.FindString(c.Message)
		if text == "" {
			continue
		}
		var n [5]int
		for i, digits := range numbers.FindAllString(text, len(n)) {
			_, _ = fmt.Sscan(digits, &n[i])
		}
		known, complete = true, complete && c.Status == metav1.ConditionFalse
		out.reached, out.counts.Total, out.counts.Failed = out.reached+n[1], out.counts.Total+n[2], out.counts.Failed+n[3]+n[4]
		if at := c.LastTransitionTime; !at.IsZero() && (out.counts.Since == nil || out.counts.Since.Before(&at)) {
			out.counts.Since = &at
		}
	}
	if !known {
		return nil
	}
	if complete {
		out.succeeded = out.counts.Total
	}
	return out
}

// see counts an instance of the add-on. It is safe on nil.
func (r *rollout) see(a *addonv1alpha1.ManagedClusterAddOn) {
	if r == nil || apimeta.IsStatusConditionTrue(a.Status.Conditions, addonv1alpha1.ConditionProgressing) {
		return
	}
	for _, p := range r.of.Status.InstallProgressions {
		if applies(a, p.ConfigReferences) {
			r.succeeded++
			return
		}
	}
}

// applies reports whether an instance has applied the configurations of a progression.
func applies(a *addonv1alpha1.ManagedClusterAddOn, wanted []addonv1alpha1.InstallConfigReference) bool {
	for _, w := range wanted {
		has := false
		for _, c := range a.Status.ConfigReferences {
			if c.ConfigGroupResource == w.ConfigGroupResource && c.LastAppliedConfig != nil && w.DesiredConfig != nil {
				has = has || *c.LastAppliedConfig == *w.DesiredConfig
			}
		}
		if !has {
			return false
		}
	}
	return true
}

// result returns the counts, which add up. It is safe on nil.
func (r *rollout) result() *cluster.Rollout {
	if r == nil {
		return nil
	}
	out := r.counts
	out.Failed = min(out.Failed, out.Total)
	reached := min(r.reached, out.Total-out.Failed)
	out.Done = min(r.succeeded, reached)
	out.Running, out.Waiting = reached-out.Done, out.Total-out.Failed-reached
	return &out
}
