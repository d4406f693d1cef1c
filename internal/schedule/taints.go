// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// ToleratesForGood reports whether a placement keeps clusters with this taint, however long
// they have it.
func ToleratesForGood(p *clusterv1beta1.Placement, taint *clusterv1.Taint) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t clusterv1beta1.Toleration) bool {
		return t.TolerationSeconds == nil && tolerates(&t, taint)
	})
}

// tolerates reports whether a toleration matches a taint, regardless of its time.
func tolerates(t *clusterv1beta1.Toleration, taint *clusterv1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case clusterv1beta1.TolerationOpExists:
		return true
	case "", clusterv1beta1.TolerationOpEqual:
		return t.Value == taint.Value
	default:
		return false
	}
}

// ends returns when a toleration of a taint ends; zero means never. A taint without a
// time counts as very old.
func ends(t *clusterv1beta1.Toleration, taint *clusterv1.Taint) time.Time {
	if t.TolerationSeconds == nil {
		return time.Time{}
	}
	// The longest Duration is 292 years, which replaces anything longer.
	const most = int64(1<<63-1) / int64(time.Second)
	end := cmp.Or(taint.TimeAdded, &metav1.Time{}).Add(time.Duration(min(max(*t.TolerationSeconds, 0), most)) * time.Second)
	if end.IsZero() {
		end = time.Unix(0, 0)
	}
	return end
}

// standing is the effect of a cluster's taints on a placement.
type standing int

const (
	welcome standing = iota
	// last: taken after all others, because of PreferNoSelect.
	last
	// refused: a taint is not tolerated.
	refused
)

// evaluateTaint returns the effect of one taint, the index of the toleration that matches
// it (or -1), and when that ends.
func (d *decider) evaluateTaint(c *cluster, taint *clusterv1.Taint) (standing, int, time.Time) {
	var over time.Time
	for i := range d.program.tolerations {
		t := &d.program.tolerations[i]
		if !tolerates(t, taint) {
			continue
		}
		end := ends(t, taint)
		if end.IsZero() || d.now.Before(end) {
			return welcome, i, end
		}
		if over.Before(end) {
			over = end
		}
	}
	switch taint.Effect {
	case clusterv1.TaintEffectPreferNoSelect:
		return last, -1, over
	case clusterv1.TaintEffectNoSelectIfNew:
		if d.isOwn(c) {
			return welcome, -1, time.Time{}
		}
	}
	return refused, -1, over
}

// worstStanding returns the combined effect of all taints of a cluster.
func (d *decider) worstStanding(c *cluster) standing {
	worst := welcome
	taints := c.object.Spec.Taints
	for i := range taints {
		got, _, end := d.evaluateTaint(c, &taints[i])
		if got == welcome && !end.IsZero() {
			d.recheckAt(end)
		}
		worst = max(worst, got)
	}
	return worst
}

// taintReports explains all taints of a cluster.
func (d *decider) taintReports(c *cluster) []TaintReport {
	var out []TaintReport
	for i := range c.object.Spec.Taints {
		taint := &c.object.Spec.Taints[i]
		got, by, end := d.evaluateTaint(c, taint)
		r := TaintReport{Key: taint.Key, Value: taint.Value, Effect: taint.Effect, Tolerated: got != refused, Last: got == last}
		if !end.IsZero() {
			r.Until = &metav1.Time{Time: end}
		}
		name := taintText(taint)
		switch {
		case by >= 0 && end.IsZero():
			r.Reason = fmt.Sprintf("%s is tolerated by tolerations[%d]", name, by)
		case by >= 0:
			r.Reason = fmt.Sprintf("%s is tolerated by tolerations[%d] until %s", name, by, end.UTC().Format(time.RFC3339))
		case got == last:
			r.Reason = name + " is not tolerated: the cluster is taken after all others"
		case got == welcome:
			r.Reason = name + " affects only new selections, and the cluster is already selected"
		case !end.IsZero() && taint.TimeAdded == nil:
			r.Reason = name + " has no timeAdded, so a toleration with tolerationSeconds has ended"
		case !end.IsZero():
			r.Reason = fmt.Sprintf("%s was tolerated until %s", name, end.UTC().Format(time.RFC3339))
		default:
			r.Reason = name + " is not tolerated"
		}
		out = append(out, r)
	}
	return out
}

func taintText(t *clusterv1.Taint) string {
	name := t.Key
	if t.Value != "" {
		name += "=" + t.Value
	}
	return fmt.Sprintf("taint %.400s:%s", name, t.Effect)
}
