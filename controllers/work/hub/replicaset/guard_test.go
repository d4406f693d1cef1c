// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestWorksOfClustersThatLeaveTogetherStayUntilThatIsConfirmed(t *testing.T) {
	clusters := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("c%02d", i))
		}
		return out
	}
	works := func(n int, placement string, change func(int, *Child)) (out []Child) {
		for i, cluster := range clusters(n) {
			c := healthy(placement, cluster)
			if change != nil {
				change(i, &c)
			}
			out = append(out, c)
		}
		return out
	}
	firstGoing := func(n int) func(int, *Child) { return func(i int, c *Child) { c.Deleting = i < n } }
	for name, tc := range map[string]struct {
		placements []Placement
		children   []Child
		confirm    string
		deletes    int
		held       string
	}{
		"one work moves":     {[]Placement{selects("p")}, works(1, "p", nil), "", 1, ""},
		"a cluster leaves":   {[]Placement{selects("p", clusters(9)...)}, works(10, "p", nil), "", 1, ""},
		"half of them leave": {[]Placement{selects("p", clusters(5)...)}, works(10, "p", nil), "", 5, ""},
		"four of five leave": {[]Placement{selects("p", clusters(1)...)}, works(5, "p", nil), "", 4, ""},
		"most of them leave": {
			[]Placement{selects("p", clusters(4)...)},
			works(10, "p", nil),
			"",
			0,
			"confirm-removal=6 --overwrite",
		},
		"all of them leave": {[]Placement{selects("p")}, works(2, "p", nil), "", 0, "confirm-removal=2 --overwrite"},
		"they leave in pieces": {
			[]Placement{selects("p", clusters(40)[36:]...)},
			works(40, "p", firstGoing(19)),
			"",
			0,
			"confirm-removal=17 --overwrite",
		},
		"all of them move": {
			[]Placement{selects("p", clusters(20)[10:]...)},
			works(10, "p", nil),
			"",
			10,
			"",
		},
		"it is confirmed": {[]Placement{selects("p")}, works(6, "p", nil), "6", 6, ""},
		"fewer were confirmed": {
			[]Placement{selects("p")},
			works(6, "p", nil),
			"5",
			0,
			"confirm-removal=6",
		},
		"the confirmation is not a number": {
			[]Placement{selects("p")},
			works(6, "p", nil),
			"yes",
			0,
			"confirm-removal=6",
		},
		"the placement is taken out of the spec": {[]Placement{selects("q", "c00")}, works(10, "p", nil), "", 9, ""},
		"the placement is deleted":               {[]Placement{{Name: "p"}}, works(10, "p", nil), "", 0, ""},
		"another placement has them": {
			[]Placement{selects("p"), selects("q", clusters(10)...)},
			works(10, "p", nil),
			"",
			0,
			"",
		},
		"one of two placements loses all that it had": {
			[]Placement{selects("p"), selects("q", "z1", "z2", "z3", "z4")},
			works(3, "p", nil),
			"",
			0,
			"placement p selects 0 clusters",
		},
		"the confirmation is taken off when it is done": {
			[]Placement{selects("p")},
			works(6, "p", firstGoing(6)),
			"6",
			0,
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := replicaSet("p")
			if tc.confirm != "" {
				set.Annotations = map[string]string{workv1alpha1.AnnotationConfirmRemoval: tc.confirm}
			}
			plan := Decide(State{Set: set, Now: now, Placements: tc.placements, Children: tc.children})
			require.Len(t, reconcile.Of[reconcile.Remove](plan.Writes), tc.deletes)
			after := plan.Object.(*workv1alpha1.ManifestWorkReplicaSet)
			held := apimeta.FindStatusCondition(after.Status.Conditions, workv1alpha1.ConditionRemovalHeld)
			if tc.held == "" {
				require.Nil(t, held)
			} else {
				require.Equal(t, workv1alpha1.ReasonPlacementShrank, held.Reason)
				require.Contains(t, held.Message, tc.held)
				require.Contains(t, fmt.Sprint(plan.Events), workv1alpha1.ConditionRemovalHeld)
			}
			pending := slices.ContainsFunc(tc.children, func(c Child) bool { return !c.Deleting })
			require.Equal(t, pending && tc.confirm != "", after.Annotations[workv1alpha1.AnnotationConfirmRemoval] != "")
		})
	}
	long := Decide(State{Set: replicaSet("p"), Now: now, Placements: []Placement{selects("p")}, Children: works(1000, "p", nil)})
	message := apimeta.FindStatusCondition(long.Object.(*workv1alpha1.ManifestWorkReplicaSet).Status.Conditions, workv1alpha1.ConditionRemovalHeld).Message
	require.Less(t, len(message), 600)
	require.True(t, strings.Contains(message, "995 more"), message)
}
