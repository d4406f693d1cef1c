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

// A cluster that a placement selects no more loses its work: that is how works move
// from cluster to cluster. But where most clusters leave at once and none come in
// their stead, it is seldom what a person wants: somebody took a label off a set,
// removed a binding, or a network that broke made every cluster unreachable. The
// works of such a placement stay until it selects the clusters again, or a person
// confirms.
const (
	// manyGone is from how many works on that their removal is held, where the
	// placement selects fewer than half as many clusters as have works.
	manyGone = 5
	// allGone is from how many works on that their removal is held, where the
	// placement selects nothing at all. A single work may go: it moves.
	allGone = 2
	// mostNamed bounds how many clusters a message names.
	mostNamed = 5
)

// loss is what one placement lets go of.
type loss struct {
	placement string
	// had counts all works of the placement, has the clusters that it selects now.
	had, has int
	// going counts the works that go or would, clusters are those where none is on
	// its way out yet.
	going    int
	clusters []string
}

// large tells whether a person has to confirm it.
func (l loss) large() bool {
	return (l.has == 0 && l.going >= allGone) || (l.going >= manyGone && 2*l.has < l.had)
}

// hold takes works off the list of those to remove whose placement lost too many
// at once, unless that is confirmed, and says so on the set.
func (d *delivery) hold(set *workv1alpha1.ManifestWorkReplicaSet) {
	losses := d.losses()
	count := 0
	for _, l := range losses {
		count += len(l.clusters)
	}
	confirmed, err := strconv.Atoi(set.Annotations[workv1alpha1.AnnotationConfirmRemoval])
	if count == 0 {
		// What was confirmed has happened; it must not hold for another time.
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
		words = append(
			words,
			fmt.Sprintf("placement %s selects %d clusters, and there are %d works of it; those on %s stay", l.placement, l.has, l.had, strings.Join(named, ", ")),
		)
	}
	put(set, d.Now, metav1.Condition{
		Type: workv1alpha1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: workv1alpha1.ReasonPlacementShrank,
		Message: fmt.Sprintf("Most clusters left at once: %s. Have the placement select them again, or confirm that the works may go: "+
			"kubectl annotate manifestworkreplicasets -n %s %s %s=%d --overwrite",
			strings.Join(words, "; "), set.Namespace, set.Name, workv1alpha1.AnnotationConfirmRemoval, count),
	})
}

// losses are those that a person has to confirm, by placement. Works of placements
// that the spec does not name any more are none: who took them out of it asked for
// that.
func (d *delivery) losses() []loss {
	var out []loss
	for i, p := range d.Placements {
		if !p.usable() {
			continue
		}
		l := loss{placement: p.Name}
		for _, by := range d.claims {
			if by == i {
				l.has++
			}
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
