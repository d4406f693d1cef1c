// SPDX-License-Identifier: Apache-2.0

//go:build perf

package work

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	workagent "github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

const cluster = "c1"

var (
	works      = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// bench is two control planes with an agent between them.
type bench struct {
	t          *testing.T
	hub, spoke dynamic.Interface
	// hubConfig and spokeConfig are those of the administrator.
	hubConfig, spokeConfig *rest.Config

	requests  atomic.Int64
	hubWrites atomic.Int64
	budgets   *budget.File
}

func newBench(t *testing.T) *bench {
	hub, spoke := harness.ControlPlane(t, "hub"), harness.ControlPlane(t, "spoke")
	b := &bench{
		t: t, hub: hub.Dynamic(t), spoke: spoke.Dynamic(t), hubConfig: hub.Config, spokeConfig: spoke.Config, budgets: budget.Open(t, "../work.yaml"),
	}
	b.install(b.hub, "manifestworks.work.open-cluster-management.io")
	b.install(b.spoke, "appliedmanifestworks.work.open-cluster-management.io")
	b.create(b.hub, namespaces, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"c1"}}`)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	cfg := workagent.Config{
		Hub: b.counting(hub.Config, &b.hubWrites), Spoke: b.counting(spoke.Config, nil), ClusterName: cluster,
		HubHash: strings.Repeat("a", 64), AgentID: "agent", Clock: clock.RealClock{}, Log: logr.Discard(),
	}
	go func() { done <- workagent.Run(ctx, cfg) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return b
}

// install adds a definition and waits until its objects are served.
func (b *bench) install(client dynamic.Interface, name string) {
	definition, err := crd.Get(name)
	require.NoError(b.t, err)
	_, err = client.Resource(crds).Create(b.t.Context(), definition, metav1.CreateOptions{})
	require.NoError(b.t, err)
	require.Eventually(b.t, func() bool {
		live, err := client.Resource(crds).Get(b.t.Context(), name, metav1.GetOptions{})
		require.NoError(b.t, err)
		stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
		if len(stored) == 0 {
			return false
		}
		resource, group, _ := strings.Cut(name, ".")
		_, err = client.Resource(schema.GroupVersionResource{Group: group, Version: stored[0], Resource: resource}).List(b.t.Context(), metav1.ListOptions{})
		return err == nil
	}, time.Minute, 20*time.Millisecond)
}

type counting struct {
	next   http.RoundTripper
	b      *bench
	writes *atomic.Int64
}

// RoundTrip counts the request.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.b.requests.Add(1)
	if c.writes != nil && r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/events") {
		c.writes.Add(1)
	}
	return c.next.RoundTrip(r)
}

func (b *bench) counting(cfg *rest.Config, writes *atomic.Int64) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, b, writes} })
	return out
}

func (b *bench) create(client dynamic.Interface, gvr schema.GroupVersionResource, raw string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(b.t, json.Unmarshal([]byte(raw), &u.Object))
	live, err := client.Resource(gvr).Namespace(u.GetNamespace()).Create(b.t.Context(), u, metav1.CreateOptions{})
	require.NoError(b.t, err)
	return live
}

// work creates a ManifestWork with one ConfigMap and waits for its condition; it returns
// how long the object and the condition took.
func (b *bench) work(name string) (object, applied time.Duration) {
	maps := b.watch(b.spoke, configMaps, "default", name)
	conditions := b.watch(b.hub, works, cluster, name)
	begin := time.Now()
	b.create(b.hub, works, fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"name":%[1]q,"namespace":"c1"},
		"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%[1]q,"namespace":"default"},"data":{"a":"1"}}]}}}`, name))
	maps(func(u *unstructured.Unstructured) bool { return u != nil })
	object = time.Since(begin)
	conditions(func(u *unstructured.Unstructured) bool {
		if u == nil {
			return false
		}
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range list {
			if m := c.(map[string]any); m["type"] == "Applied" && m["status"] == "True" {
				return true
			}
		}
		return false
	})
	return object, time.Since(begin)
}

// watch waits, with a watch of one object, until the object is as wanted; nil is a
// deleted object.
func (b *bench) watch(client dynamic.Interface, gvr schema.GroupVersionResource, namespace, name string) func(func(*unstructured.Unstructured) bool) {
	w, err := client.Resource(gvr).Namespace(namespace).Watch(b.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(b.t, err)
	return func(want func(*unstructured.Unstructured) bool) {
		defer w.Stop()
		timeout := time.After(30 * time.Second)
		for {
			select {
			case e := <-w.ResultChan():
				u, _ := e.Object.(*unstructured.Unstructured)
				if e.Type == "DELETED" {
					u = nil
				}
				if want(u) {
					return
				}
			case <-timeout:
				require.FailNow(b.t, "timed out", "%s %s/%s", gvr.Resource, namespace, name)
			}
		}
	}
}

// repaired measures the time from a change by another writer to the repair.
func (b *bench) repaired(name string, harm func(dynamic.ResourceInterface) error, want func(*unstructured.Unstructured) bool) time.Duration {
	api := b.spoke.Resource(configMaps).Namespace("default")
	before, err := api.Get(b.t.Context(), name, metav1.GetOptions{})
	require.NoError(b.t, err)
	wait := b.watch(b.spoke, configMaps, "default", name)
	begin := time.Now()
	require.NoError(b.t, harm(api))
	wait(func(u *unstructured.Unstructured) bool {
		return u != nil && u.GetResourceVersion() != before.GetResourceVersion() && want(u)
	})
	return time.Since(begin)
}

// restored measures the time from the deletion of a work's object until it is back.
func (b *bench) restored(name string) time.Duration {
	return b.repaired(name, func(api dynamic.ResourceInterface) error {
		return api.Delete(b.t.Context(), name, metav1.DeleteOptions{})
	}, func(*unstructured.Unstructured) bool { return true })
}

// corrected measures the time from the change of a field of a work's object until it is
// repaired.
func (b *bench) corrected(name string) time.Duration {
	return b.repaired(name, func(api dynamic.ResourceInterface) error {
		_, err := api.Patch(b.t.Context(), name, types.MergePatchType, []byte(`{"data":{"a":"2"}}`), metav1.PatchOptions{})
		return err
	}, func(u *unstructured.Unstructured) bool {
		v, _, _ := unstructured.NestedString(u.Object, "data", "a")
		return v == "1"
	})
}

// pushed measures the time from the change of a value that a feedback rule reads until
// the hub has it.
func (b *bench) pushed(name string) time.Duration {
	api := b.hub.Resource(works).Namespace(cluster)
	_, err := api.Patch(b.t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"manifestConfigs":[{
		"resourceIdentifier":{"group":"","resource":"configmaps","namespace":"default","name":%q},
		"feedbackRules":[{"type":"JSONPaths","jsonPaths":[{"name":"told","path":".data.told"}]}]}]}}`, name), metav1.PatchOptions{})
	require.NoError(b.t, err)
	b.changeValue(name, "before")
	// The agent reads one object twice a second at most.
	<-time.After(time.Second)
	return b.changeValue(name, "after")
}

// changeValue changes the value and waits until the hub has it.
func (b *bench) changeValue(name, value string) time.Duration {
	wait := b.watch(b.hub, works, cluster, name)
	begin := time.Now()
	_, err := b.spoke.Resource(configMaps).Namespace("default").Patch(b.t.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"data":{"told":%q}}`, value), metav1.PatchOptions{})
	require.NoError(b.t, err)
	wait(func(u *unstructured.Unstructured) bool {
		raw, err := json.Marshal(u)
		return err == nil && strings.Contains(string(raw), fmt.Sprintf(`"string":%q`, value))
	})
	return time.Since(begin)
}

// calibrate returns the median duration of 200 updates of a ConfigMap.
func (b *bench) calibrate() time.Duration {
	api := b.spoke.Resource(configMaps).Namespace("default")
	b.create(b.spoke, configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"calibration","namespace":"default"}}`)
	var took []time.Duration
	for i := range 200 {
		begin := time.Now()
		_, err := api.Patch(b.t.Context(), "calibration", types.MergePatchType, fmt.Appendf(nil, `{"data":{"n":"%d"}}`, i), metav1.PatchOptions{})
		require.NoError(b.t, err)
		took = append(took, time.Since(begin))
	}
	return budget.Median(took)
}

func TestTheWorkAgentKeepsItsBudgets(t *testing.T) {
	b := newBench(t)
	b.work("warm")
	write := b.calibrate()
	t.Logf("one write to this API server takes %s", write.Round(10*time.Microsecond))

	rounds := budget.Sized(100, 30)
	var objects, applied []time.Duration
	before := b.hubWrites.Load()
	for i := range rounds {
		object, done := b.work(fmt.Sprintf("w-%d", i))
		objects, applied = append(objects, object), append(applied, done)
	}
	b.budgets.Count("hubWrites", float64(1+(b.hubWrites.Load()-before+int64(rounds)-1)/int64(rounds)))
	b.budgets.Time("createToObject", objects, write)
	b.budgets.Time("createToApplied", applied, write)

	b.budgets.Tail("createToAppliedTail", applied, write)
	bare := b.own().bare("alone").ones(rounds)
	b.budgets.Count("createToAppliedBare", budget.Median(applied).Seconds()/budget.Median(bare).Seconds())

	var back, repaired, pushed []time.Duration
	for i := range rounds {
		back = append(back, b.restored(fmt.Sprintf("w-%d", i)))
	}
	b.budgets.Time("deletedToBack", back, write)
	for i := range rounds {
		repaired = append(repaired, b.corrected(fmt.Sprintf("w-%d", i)))
	}
	b.budgets.Time("changedToRepaired", repaired, write)
	for i := range rounds / 2 {
		pushed = append(pushed, b.pushed(fmt.Sprintf("w-%d", i)))
	}
	b.budgets.Time("feedbackPushed", pushed, write)
	b.budgets.Tail("feedbackPushedTail", pushed, write)

	b.own().measure(60, 4).check(b.budgets)

	require.Eventually(t, func() bool {
		before := b.requests.Load()
		<-time.After(2 * time.Second)
		return b.requests.Load() == before
	}, time.Minute, time.Millisecond)
	before = b.requests.Load()
	<-time.After(10 * time.Second)
	b.budgets.Count("requestsAtRest", float64(b.requests.Load()-before))
	b.budgets.Complete()
	_, err := b.hub.Resource(works).Namespace(cluster).Get(t.Context(), "nothing", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
}
