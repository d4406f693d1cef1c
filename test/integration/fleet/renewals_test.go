// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// missed is how many lease durations without a renewal mean that one was left out: an agent renews
// after one to one and a quarter.
const missed = 2

// renewals are those of the lease of a cluster, from the time on when a watch began.
type renewals struct {
	duration time.Duration
	stalls   *harness.Stalls
	stop     func()
	running  sync.WaitGroup
	mu       sync.Mutex
	times    []time.Time
}

// watchRenewals records every renewal by the time that its agent wrote into the lease, so that it does
// not matter when the watch delivers it.
func watchRenewals(t *testing.T, hub *harness.Cluster, cluster string) *renewals {
	t.Helper()
	client := hub.Dynamic(t)
	mc, err := client.Resource(clusters).Get(t.Context(), cluster, metav1.GetOptions{})
	require.NoError(t, err)
	seconds, _, _ := unstructured.NestedInt64(mc.Object, "spec", "leaseDurationSeconds")
	require.Positive(t, seconds)
	api := client.Resource(fleet.Leases).Namespace(cluster)
	list, err := api.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &renewals{duration: time.Duration(seconds) * time.Second, stop: cancel, times: []time.Time{time.Now()}, stalls: harness.WatchStalls(ctx)}
	r.running.Go(func() { r.follow(ctx, api, list.GetResourceVersion()) })
	t.Cleanup(r.end)
	return r
}

// follow watches from a version on; when a watch ends, the next one begins with what is there.
func (r *renewals) follow(ctx context.Context, api dynamic.ResourceInterface, from string) {
	for ctx.Err() == nil {
		events, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=managed-cluster-lease", ResourceVersion: from})
		from = ""
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		for event := range events.ResultChan() {
			if lease, ok := event.Object.(*unstructured.Unstructured); ok {
				r.add(lease)
			}
		}
	}
}

func (r *renewals) add(lease *unstructured.Unstructured) {
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	at, err := time.Parse(time.RFC3339Nano, text)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && at.After(r.times[len(r.times)-1]) {
		r.times = append(r.times, at)
	}
}

// noneMissed requires that no renewal was left out until now, except while the machine stood still. With
// again it first waits for one, which an agent that has just started makes at once.
func (r *renewals) noneMissed(t *testing.T, again bool) {
	t.Helper()
	if again {
		eventually(t, func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.times) > 1
		}, patience, 100*time.Millisecond, "no renewal since %s", r.times[0])
	}
	r.end()
	longest := time.Duration(0)
	times := append(r.times, time.Now())
	for i := range times[1:] {
		longest = max(longest, times[i+1].Sub(times[i])-r.stalls.Lost(times[i], times[i+1]))
	}
	t.Logf("measured: %d renewals of a lease of %s, %s apart at most", len(r.times)-1, r.duration, longest)
	require.Less(t, longest, missed*r.duration, "a renewal was left out: %v", times)
}

func (r *renewals) end() {
	r.stop()
	r.running.Wait()
}
