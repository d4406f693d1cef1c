// SPDX-License-Identifier: Apache-2.0

package reconnect

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/heartbeat"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

const (
	// agents is how many there are, seed what their delays are drawn from.
	agents = 60
	seed   = 20
	// outage is how long the hub is away.
	outage = 2 * time.Hour
	// busiest is the largest part of the agents that may try to renew in one second, or return in it;
	// last is when all have returned.
	busiest, last = 0.4, 21 * time.Second
	// rarely is the mean time between two requests of an agent while the hub is away, at least: it
	// tries to renew every 16 s, and the back-off of a watch starts anew every two minutes.
	rarely = 5 * time.Second
	// patience bounds the wait for a definition to be served.
	patience = 2 * time.Minute
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	leases      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	clusters    = clusterv1.GroupVersion.WithResource("managedclusters")
)

func TestMain(m *testing.M) {
	// They write a line for each of the many failures, and pause by a time of their own.
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

func nameOf(agent int) string { return fmt.Sprintf("cluster-%d", agent) }

// accept creates what an accepted cluster has on the hub.
func accept(t *testing.T, admin dynamic.Interface, name string) {
	t.Helper()
	for _, o := range []struct {
		api dynamic.ResourceInterface
		raw string
	}{
		{admin.Resource(clusters),
			`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":%q},"spec":{"hubAcceptsClient":true}}`},
		{admin.Resource(namespaces), `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`},
		{admin.Resource(leases).Namespace(name),
			`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"` + clusterv1.LeaseName + `","labels":{"of":%q}}}`},
	} {
		u := &unstructured.Unstructured{}
		require.NoError(t, u.UnmarshalJSON(fmt.Appendf(nil, o.raw, name)))
		_, err := o.api.Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	_, err := admin.Resource(clusters).Patch(t.Context(), name, types.MergePatchType, fmt.Appendf(nil,
		`{"status":{"conditions":[{"type":%q,"status":"True","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		clusterv1.ConditionHubAccepted), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// fleet prepares a hub with clusters, each accepted.
func fleet(t *testing.T) *rest.Config {
	t.Helper()
	cluster := harness.Fresh(t, "hub")
	config := rest.CopyConfig(cluster.Config)
	config.QPS = -1
	admin, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	definition, err := crd.Get("managedclusters.cluster.open-cluster-management.io")
	require.NoError(t, err)
	_, err = admin.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{})
	require.NoError(t, err)
	require.True(t, harness.Until(patience, func() bool {
		_, err := admin.Resource(clusters).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}), "the definition is not served")
	for i := range agents {
		accept(t, admin, nameOf(i))
	}
	return config
}

// keepInTouch runs, until ctx ends, the loops with which one agent keeps in touch with the hub.
func keepInTouch(ctx context.Context, t *testing.T, h *hub, c *rest.Config, agent int) (wait func()) {
	t.Helper()
	client, err := dynamic.NewForConfigAndClient(c, &http.Client{Transport: line{h, agent}})
	require.NoError(t, err)
	pulse := &watch.Pulse{}
	own := watch.New(watch.Options[*clusterv1.ManagedCluster]{
		Client: client, Resource: clusters, FieldSelector: "metadata.name=" + nameOf(agent), Pulse: pulse,
		Keep: func(u *unstructured.Unstructured) (*clusterv1.ManagedCluster, bool) {
			mc, err := typed.FromUnstructured[clusterv1.ManagedCluster](u)
			return mc, err == nil && apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionHubAccepted)
		},
	})
	random := rand.New(rand.NewPCG(seed, uint64(agent))) //nolint:gosec // it has to repeat itself
	beats := heartbeat.New(heartbeat.Config{
		Hub: client, Cluster: nameOf(agent), Clusters: own, Clock: clock.RealClock{}, Random: random.Float64,
		Outcome: func(err error) {
			if err == nil {
				pulse.Beat()
			}
		},
	})
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{own.Run, beats.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("agent %d: %v", agent, err)
			}
		})
	}
	return running.Wait
}

// returned requires that all agents are in touch again, and that they came one by one.
func returned(t *testing.T, sent []request, back time.Time) {
	t.Helper()
	renewed, watched := map[int]time.Duration{}, map[int]time.Duration{}
	var first []request
	for _, r := range sent {
		after := r.at.Sub(back)
		if _, was := renewed[r.agent]; r.answered && r.renews && !was {
			renewed[r.agent] = after
			first = append(first, r)
		}
		if _, was := watched[r.agent]; r.answered && r.watches && !was {
			watched[r.agent] = after
		}
	}
	spread(t, first, back)
	for i := range agents {
		for what, times := range map[string]map[int]time.Duration{"renews": renewed, "watches": watched} {
			at, is := times[i]
			require.True(t, is, "agent %d never %s again", i, what)
			require.Less(t, at, last, "agent %d %s only now", i, what)
		}
	}
}

// spread requires that not too many agents try to renew in any one second after a time.
func spread(t *testing.T, sent []request, from time.Time) {
	t.Helper()
	perSecond := map[int]int{}
	for _, r := range sent {
		if r.renews && !r.at.Before(from) {
			perSecond[int(r.at.Sub(from).Seconds())]++
		}
	}
	require.NotEmpty(t, perSecond)
	most := slices.Max(slices.Collect(maps.Values(perSecond)))
	t.Logf("%d of %d agents in the busiest second", most, agents)
	require.LessOrEqual(t, float64(most), busiest*agents, "too many in one second: %v", perSecond)
}

// TestManyAgentsReturnSpreadAfterHours has a hub that fails for all agents in the same second, and
// is then away for hours. Meanwhile each agent asks now and then, and when the hub is back
// all return within seconds, but not at once, and then write nothing but leases.
func TestManyAgentsReturnSpreadAfterHours(t *testing.T) {
	config, now := fleet(t), time.Now()
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Until(now)) // certificates are valid from then on
		h := newHub(t, config)
		h.set(true, false)
		ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), logr.Discard()))
		for i := range agents {
			defer keepInTouch(ctx, t, h, config, i)()
		}
		defer cancel()
		<-time.After(time.Second / 2)
		refused := h.take()
		require.Equal(t, agents, len(refused)-answered(refused), "all fail in step")
		h.set(true, true)
		running := runtime.NumGoroutine()

		<-time.After(outage)
		asked := h.take()
		spread(t, asked, time.Now().Add(-5*time.Minute))
		require.LessOrEqual(t, len(asked), agents*int(outage/rarely), "the agents ask too often while the hub is away")
		require.LessOrEqual(t, runtime.NumGoroutine(), running, "what waits for the hub adds up")

		h.set(false, false)
		back := time.Now()
		<-time.After(time.Minute)
		returned(t, h.take(), back)

		const rest = 10 * time.Minute
		<-time.After(rest)
		atRest := h.take()
		for _, r := range atRest {
			require.True(t, r.renews && r.answered, "at rest only leases are written, and nothing is read: %+v", r)
		}
		require.LessOrEqual(t, len(atRest), agents*int(rest/time.Minute))
	})
}

// answered counts the requests that were answered.
func answered(sent []request) (n int) {
	for _, r := range sent {
		if r.answered {
			n++
		}
	}
	return n
}
