// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// flips is how often the state of a cluster changes to measure how soon the hub follows.
const flips = 12

// follows returns how long the hub takes, in the middle, to follow changes of a cluster's state.
func (s *scene) follows(t *testing.T, name string) time.Duration {
	t.Helper()
	var took []time.Duration
	for range flips / 2 {
		for status, has := range map[metav1.ConditionStatus]func(*clusterv1.ManagedCluster) bool{
			metav1.ConditionFalse: tainted(clusterv1.TaintUnavailable), metav1.ConditionUnknown: tainted(clusterv1.TaintUnreachable),
		} {
			began := time.Now()
			s.state(t, name, status)
			s.await(t, name, "has its taint", has)
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	return took[flips/2]
}

// flood makes an agent change its own status as fast as it can over some connections at once, in a
// way that the hub answers each time, until the returned function is called. That returns the
// number of writes.
func (a *agent) flood(t *testing.T, name string) (end func() int64) {
	t.Helper()
	live, err := typed.Get[clusterv1.ManagedCluster](t.Context(), a.dyn, clusters, "", name)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var n atomic.Int64
	var running sync.WaitGroup
	for range 4 {
		mc := live.DeepCopy()
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				available := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable)
				available.Status = []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue}[i%2]
				available.Message = fmt.Sprint(i)
				body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": mc.Status.Conditions}})
				if err == nil && patch(a.dyn, name, string(body), "status") == nil {
					n.Add(1)
				}
			}
		})
	}
	return func() int64 {
		cancel()
		running.Wait()
		return n.Load()
	}
}

// TestAnAgentThatWritesWithoutEndHoldsUpNoOther has an agent that changes its status all the time.
// The hub answers with no more writes than it makes, follows other clusters as before,
// and comes to rest after it.
func TestAnAgentThatWritesWithoutEndHoldsUpNoOther(t *testing.T) {
	s := sharedHub(t)
	evil := s.register(t, "flood-evil", "a")
	s.joined(t, evil, "flood-evil")
	s.joined(t, s.register(t, "flood-other", "a"), "flood-other")
	alone := s.follows(t, "flood-other")

	before := s.get(t, "flood-evil").Generation
	end := evil.flood(t, "flood-evil")
	beside := s.follows(t, "flood-other")
	sent := end()
	answered := s.get(t, "flood-evil").Generation - before
	alone = max(alone, s.follows(t, "flood-other")) // others may have begun to use this machine
	t.Logf("%d writes of the agent, %d of the hub to its spec; the hub follows others in %s, alone in %s", sent, answered, beside, alone)
	require.Greater(t, sent, int64(10*flips), "it was no flood")
	require.LessOrEqual(t, answered, sent)
	require.Less(t, beside, 5*alone+time.Second, "alone it takes %s", alone)

	evil.report(t, "flood-evil", metav1.ConditionTrue)
	s.await(t, "flood-evil", "has no taint", tainted())
	rests(t, func() string { return s.get(t, "flood-evil").ResourceVersion }, 2*time.Second)
}
