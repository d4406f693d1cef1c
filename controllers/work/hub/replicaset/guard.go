// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

// A cluster that a placement no longer selects loses its work: that is how works move
// from cluster to cluster. But if most clusters leave at once and none replace them, it
// is seldom intended: someone removed a label from a set or a binding, or a network
// failure made every cluster unreachable. The works of such a placement stay until it
// selects the clusters again, or a person confirms the removal.
const (
	// manyGone is the number of works from which their removal is held, if the placement
	// selects fewer than half as many clusters as have works.
	manyGone = 5
	// allGone is the number of works from which their removal is held, if the placement
	// selects nothing at all. A single work may go: it moves.
	allGone = 2
	// mostNamed bounds how many clusters a message names.
	mostNamed = 5
)

// loss describes the works that one placement loses.
type loss struct {
	placement string
	// had counts all works of the placement, has the clusters that it selects now.
	had, has int
	// going counts the works that are removed or would be, clusters are those without a
	// work that is being deleted already.
	going    int
	clusters []string
}

// large reports whether a person has to confirm it.
func (l loss) large() bool {
	return (l.has == 0 && l.going >= allGone) || (l.going >= manyGone && 2*l.has < l.had)
}

// holdRemovals keeps works from being removed whose placement lost too many at once,
// unless that is confirmed, and reports it on the set.
func (d *delivery) holdRemovals(set *workv1alpha1.ManifestWorkReplicaSet) {
	losses := d.losses()
	count := 0
	for _, l := range losses {
		count += len(l.clusters)
	}
	confirmed, err := strconv.Atoi(set.Annotations[workv1alpha1.AnnotationConfirmRemoval])
	if count == 0 {
		// The confirmed removal has happened; the confirmation must not apply to a later
		// one.
		delete(set.Annotations, workv1alpha1.AnnotationConfirmRemoval)
	}
	if count == 0 || (err == nil && count <= confirmed) {
		apimeta.RemoveStatusCondition(&set.Status.Conditions, workv1alpha1.ConditionRemovalHeld)
		return
	}
	d.remove = slices.DeleteFunc(d.remove, func(c Child) bool {
		return !c.Deleting && slices.ContainsFunc(losses, func(l loss) bool { return l.placement == c.Placement && slices.Contains(l.clusters, c.Cluster) })
	})
	var words []string
	for _, l := range losses {
		named := slices.Clone(l.clusters[:min(mostNamed, len(l.clusters))])
		if more := len(l.clusters) - len(named); more > 0 {
			named = append(named, fmt.Sprintf("%d more", more))
		}
		words = append(words, fmt.Sprintf("placement %s selects %d clusters, and has %d works; those on %s stay",
			l.placement, l.has, l.had, strings.Join(named, ", ")))
	}
	setCondition(set, d.Now, metav1.Condition{
		Type: workv1alpha1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: workv1alpha1.ReasonPlacementShrank,
		Message: fmt.Sprintf("Most clusters left at once: %s. Have the placement select them again, or confirm that the works may be removed: "+
			"kubectl annotate manifestworkreplicasets -n %s %s %s=%d --overwrite",
			strings.Join(words, "; "), set.Namespace, set.Name, workv1alpha1.AnnotationConfirmRemoval, count),
	})
}

// losses returns the losses that a person has to confirm, by placement. Works of
// placements that the spec no longer names do not count: removing a placement from the
// spec is a deliberate request.
func (d *delivery) losses() []loss {
	var out []loss
	for i, p := range d.Placements {
		if !p.usable() {
			continue
		}
		l := loss{placement: p.Name}
		for _, by := range d.claims {
			l.has += boolean(by == i)
		}
		for cluster, c := range d.children {
			if c.Placement != p.Name {
				continue
			}
			l.had++
			if _, claimed := d.claims[cluster]; claimed {
				continue
			}
			l.going++
			if !c.Deleting {
				l.clusters = append(l.clusters, cluster)
			}
		}
		if l.large() && len(l.clusters) > 0 {
			slices.Sort(l.clusters)
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b loss) int { return cmp.Compare(a.placement, b.placement) })
	return out
}
