// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// placementLoop is the control loop for placements.
var placementLoop = loops{
	kinds:  []func(*runtime.Scheme) error{clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme},
	limits: []manager.Kind{{Example: &clusterv1.ManagedCluster{}, Packed: true}},
	register: func(m *manager.Manager, dyn dynamic.Interface) {
		placement.Register(m, placement.Config{Client: dyn, Clock: clock.RealClock{}})
	},
}

// union watches the decisions of a placement, and records what a reader finds after every
// single write.
type union struct {
	mu      sync.Mutex
	objects map[string][]string
	// watched holds the clusters that must be selected, missing the ones that were not at
	// some point.
	watched, missing map[string]bool
	seen             int
}

// follow starts to watch the decisions of the placement p of a namespace.
func (f *field) follow(t *testing.T) *union {
	t.Helper()
	u := &union{objects: map[string][]string{}, watched: map[string]bool{}, missing: map[string]bool{}}
	w, err := f.dyn.Resource(decisions).Namespace(f.namespace).Watch(t.Context(), metav1.ListOptions{LabelSelector: clusterv1beta1.LabelPlacement + "=p"})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	go func() {
		for event := range w.ResultChan() {
			raw, err := json.Marshal(event.Object)
			if err != nil {
				continue
			}
			var d clusterv1beta1.PlacementDecision
			if json.Unmarshal(raw, &d) == nil {
				u.record(string(event.Type), &d)
			}
		}
	}()
	return u
}

func (u *union) record(kind string, d *clusterv1beta1.PlacementDecision) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen++
	if kind == "DELETED" {
		delete(u.objects, d.Name)
	} else {
		u.objects[d.Name] = selectedIn(d)
	}
	now := u.selected()
	for c := range u.watched {
		if !now[c] {
			u.missing[c] = true
		}
	}
}

// requireSelected sets the clusters that have to be selected from now on. The watch may
// still be telling of the time before they were.
func (u *union) requireSelected(t *testing.T, names ...string) {
	t.Helper()
	soon(t, func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		now := u.selected()
		if slices.ContainsFunc(names, func(n string) bool { return !now[n] }) {
			return false
		}
		u.watched = map[string]bool{}
		for _, n := range names {
			u.watched[n] = true
		}
		return true
	}, "the watch does not tell that %v are selected", names)
}

// selected returns the clusters of all decisions; the caller holds the lock.
func (u *union) selected() map[string]bool {
	now := map[string]bool{}
	for _, list := range u.objects {
		for _, c := range list {
			now[c] = true
		}
	}
	return now
}

// lost returns the clusters that were missing at any time.
func (u *union) lost() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.missing))
}

func selectedIn(d *clusterv1beta1.PlacementDecision) []string {
	var out []string
	for _, one := range d.Status.Decisions {
		out = append(out, one.ClusterName)
	}
	return out
}

// TestThePlacementLoopMayDieAfterEveryWrite ends the loop after every write: when a
// placement is new, when its groups change, so that every cluster moves, and when fewer
// clusters are wanted. No cluster that stays is ever missing from the decisions.
func TestThePlacementLoopMayDieAfterEveryWrite(t *testing.T) {
	t.Parallel()
	s, config := served(t, "apps")
	f := &field{scene: s, namespace: "apps", set: "apps"}
	f.bind(t, "apps")
	var all []string
	for i := range 6 {
		name := fmt.Sprintf("k%d", i)
		all = append(all, name)
		require.NoError(t, f.add(name, nil))
	}
	u := f.follow(t)
	dying := func(what string, atLeast int, want ...string) {
		t.Helper()
		done := func() bool {
			return slices.Equal(want, f.groups(t, "p")) && f.satisfied(t, "p", len(strings.Fields(strings.Join(want, " ")))-len(want))
		}
		lives := 0
		for ; !done(); lives++ {
			require.Less(t, lives, 60, "%s does not converge: %v", what, f.groups(t, "p"))
			mortal, process := faults.StopAfter(config, 1)
			placementLoop.run(t, mortal, process.Died(), done)
		}
		t.Logf("%s: %d lives of one write", what, lives)
		require.GreaterOrEqual(t, lives, atLeast, what)
		require.Empty(t, u.lost(), "%s: clusters that stay were missing for a moment", what)
	}
	f.place(t, "p", `{"numberOfClusters":5,"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":2}}}`)
	dying("a new placement", 6, "0: k0 k1", "1: k2 k3", "2: k4")
	u.requireSelected(t, "k0", "k1", "k2", "k3", "k4")
	f.place(t, "p", `{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":1}}}`)
	dying("groups of one", 6, "0: k0", "1: k1", "2: k2", "3: k3", "4: k4", "5: k5")
	u.requireSelected(t, all...)
	f.place(t, "p", `{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":4}}}`)
	dying("groups of four", 5, "0: k0 k1 k2 k3", "1: k4 k5")
	u.requireSelected(t, "k0", "k1")
	f.place(t, "p", `{"numberOfClusters":2}`)
	dying("fewer clusters", 2, "0: k0 k1")
	soon(t, func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.seen > 15
	}, "the watch does not see the writes")
}

// TestAPlacementAtRestCostsNothing starts the loop on placements that are decided, and
// expects no writes, and no reads other than its watches.
func TestAPlacementAtRestCostsNothing(t *testing.T) {
	t.Parallel()
	s, config := served(t, "apps")
	f := &field{scene: s, namespace: "apps", set: "apps"}
	f.bind(t, "apps")
	for i := range 3 {
		require.NoError(t, f.add(fmt.Sprintf("k%d", i), nil))
	}
	f.place(t, "p", `{"numberOfClusters":2,"prioritizerPolicy":{"mode":"Exact"}}`) // other decisions do not count
	f.place(t, "q", `{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":"50%"}}}`)
	done := func() bool {
		return slices.Equal([]string{"0: k0 k1"}, f.groups(t, "p")) && f.satisfied(t, "p", 2) && len(f.groups(t, "q")) == 2 && f.satisfied(t, "q", 3)
	}
	counted, process := faults.Count(config)
	placementLoop.run(t, counted, nil, done)
	// Two objects and their contents, one more, and two statuses; nothing twice.
	var writes []string
	for _, w := range process.Seen() {
		if !strings.HasSuffix(w, "/events") {
			writes = append(writes, w)
		}
	}
	require.Len(t, writes, 3+3+2, "%v", writes)

	counted, process = faults.Count(config)
	placementLoop.run(t, counted, nil, func() bool {
		s.heartbeat(t, "k0")
		return true
	})
	require.Empty(t, process.Seen(), "a start on what is decided, and a heartbeat, write nothing")
	for _, r := range process.Take() {
		require.True(t, strings.HasPrefix(r, "GET "), r)
		require.NotContains(t, r, "/placementdecisions/", "decisions are not read one by one")
	}
}

// heartbeat reports conditions of a cluster several times, for longer than the loop's
// batching delay.
func (s *scene) heartbeat(t *testing.T, name string) {
	t.Helper()
	for i := range 3 {
		body := fmt.Sprintf(
			`{"status":{"conditions":[{"type":"ManagedClusterConditionAvailable","status":"True","reason":"R","message":"%d",
				"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
			i,
		)
		_, err := s.dyn.Resource(clusters).Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		<-time.After(500 * time.Millisecond)
	}
}
