// SPDX-License-Identifier: Apache-2.0

//go:build perf

package replicaset

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

const (
	// path of the budgets.
	path = "../replicaset.yaml"
	// fleetSize is how many clusters the set goes to, perDecision how many stand
	// in one PlacementDecision.
	fleetSize, perDecision = 1000, 100
	// workers is how many requests of the test are on their way at a time.
	workers = 16
	// patience bounds every wait.
	patience = 5 * time.Minute
	// window is how long the hub is watched at rest.
	window = 15 * time.Second
	// payload is the size of the ConfigMap of the template, in bytes.
	payload = 1000
)

var (
	clusters    = clusterv1.GroupVersion.WithResource("managedclusters")
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	placements  = clusterv1beta1.GroupVersion.WithResource("placements")
	decisions   = clusterv1beta1.GroupVersion.WithResource("placementdecisions")
	works       = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)
	replicaSets = workv1alpha1.GroupVersion.WithResource("manifestworkreplicasets")
)

// auditPolicy notes every write once, when it has been answered.
const auditPolicy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived","ResponseStarted"],"rules":[
{"level":"None","nonResourceURLs":["*"]},{"level":"None","verbs":["get","list","watch"]},{"level":"None","resources":[{"group":"coordination.k8s.io"}]},
{"level":"Metadata"}]}`

// scene is a hub.
type scene struct {
	*harness.Cluster
	t       *testing.T
	dyn     dynamic.Interface
	program string
	audit   string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	dir := t.TempDir()
	s := &scene{t: t, program: harness.Program(t, "controllers/ocm-hub"), audit: filepath.Join(dir, "audit.log")}
	policy := filepath.Join(dir, "policy.json")
	require.NoError(t, os.WriteFile(policy, []byte(auditPolicy), 0o600))
	s.Cluster = harness.WithNode(t, "hub", map[string]string{"ocm-hub": s.program},
		harness.APIServer("--audit-policy-file="+policy, "--audit-log-path="+s.audit))
	s.dyn = s.Dynamic(t)
	cluster, err := fleet.Connect(s.Config, "hub")
	require.NoError(t, err)
	_, err = fleet.Init(t.Context(), fleet.InitOptions{Common: fleet.Common{Wait: true}, Hub: cluster, Version: "v0.0.0-perf"})
	require.NoError(t, err)
	return s
}

func nameOf(i int) string { return fmt.Sprintf("c-%04d", i) }

// each runs do for every cluster.
func (s *scene) each(do func(ctx context.Context, name string) error) {
	s.t.Helper()
	group, ctx := errgroup.WithContext(s.t.Context())
	group.SetLimit(workers)
	for i := range fleetSize {
		group.Go(func() error { return do(ctx, nameOf(i)) })
	}
	require.NoError(s.t, group.Wait())
}

func object(text string, args ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(fmt.Appendf(nil, text, args...)); err != nil {
		panic(err)
	}
	return u
}

// prepare makes clusters and namespaces, and a placement that selects all.
func (s *scene) prepare() {
	s.t.Helper()
	s.each(func(ctx context.Context, name string) error {
		mc := object(`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":%q}}`, name)
		if _, err := s.dyn.Resource(clusters).Create(ctx, mc, metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err := s.dyn.Resource(namespaces).Create(ctx, object(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name), metav1.CreateOptions{})
		return err
	})
	p := object(`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement",
		"metadata":{"name":"all","annotations":{"cluster.open-cluster-management.io/experimental-scheduling-disable":"true"}},"spec":{}}`)
	_, err := s.dyn.Resource(placements).Namespace("default").Create(s.t.Context(), p, metav1.CreateOptions{})
	require.NoError(s.t, err)
	for first := 0; first < fleetSize; first += perDecision {
		name := fmt.Sprintf("all-%d", first/perDecision+1)
		d := object(`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"PlacementDecision","metadata":{"name":%q,"labels":{
			"cluster.open-cluster-management.io/placement":"all","cluster.open-cluster-management.io/decision-group-index":"0","cluster.open-cluster-management.io/decision-group-name":""}}}`, name)
		_, err := s.dyn.Resource(decisions).Namespace("default").Create(s.t.Context(), d, metav1.CreateOptions{})
		require.NoError(s.t, err)
		list := []map[string]string{}
		for i := range perDecision {
			list = append(list, map[string]string{"clusterName": nameOf(first + i), "reason": ""})
		}
		body, err := json.Marshal(map[string]any{"status": map[string]any{"decisions": list}})
		require.NoError(s.t, err)
		_, err = s.dyn.Resource(decisions).Namespace("default").Patch(s.t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		require.NoError(s.t, err)
	}
}

// deploy applies the set with a value, and returns how long it takes until every
// cluster has a work with it.
func (s *scene) deploy(value string) time.Duration {
	s.t.Helper()
	list, err := s.dyn.Resource(works).List(s.t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(s.t, err)
	w, err := s.dyn.Resource(works).Watch(s.t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), LabelSelector: workv1alpha1.LabelManifestWorkReplicaSet})
	require.NoError(s.t, err)
	defer w.Stop()
	set := object(`{"apiVersion":"work.open-cluster-management.io/v1alpha1","kind":"ManifestWorkReplicaSet","metadata":{"name":"web"},"spec":{"placementRefs":[{"name":"all"}],
		"manifestWorkTemplate":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"},"data":{"value":%q,"rest":%q}}]}}}}`,
		value, strings.Repeat("x", payload))
	began := time.Now()
	_, err = s.dyn.Resource(replicaSets).Namespace("default").Apply(s.t.Context(), "web", set, metav1.ApplyOptions{FieldManager: "test", Force: true})
	require.NoError(s.t, err)
	have := map[string]bool{}
	deadline := time.After(patience)
	for len(have) < fleetSize {
		select {
		case event := <-w.ResultChan():
			u, ok := event.Object.(*unstructured.Unstructured)
			require.True(s.t, ok, "%+v", event.Object)
			manifests, _, _ := unstructured.NestedSlice(u.Object, "spec", "workload", "manifests")
			if data, _, _ := unstructured.NestedStringMap(manifests[0].(map[string]any), "data"); data["value"] == value {
				have[u.GetNamespace()] = true
			}
		case <-deadline:
			require.FailNow(s.t, "timed out", "%d of %d works", len(have), fleetSize)
		}
	}
	return time.Since(began)
}

// report says of every work, as the agents do, that it is applied and available,
// and returns how long it takes from the last report until the set is rolled out.
func (s *scene) report() time.Duration {
	s.t.Helper()
	list, err := s.dyn.Resource(works).List(s.t.Context(), metav1.ListOptions{LabelSelector: workv1alpha1.LabelManifestWorkReplicaSet})
	require.NoError(s.t, err)
	require.Len(s.t, list.Items, fleetSize, "one work a cluster")
	byCluster := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		byCluster[list.Items[i].GetNamespace()] = &list.Items[i]
	}
	stamp := time.Now().UTC().Format(time.RFC3339)
	s.each(func(ctx context.Context, cluster string) error {
		u := byCluster[cluster]
		body := fmt.Appendf(nil, `{"status":{"conditions":[
			{"type":"Applied","status":"True","reason":"AppliedManifestWorkComplete","message":"Apply manifest work complete","lastTransitionTime":%[1]q,"observedGeneration":%[2]d},
			{"type":"Available","status":"True","reason":"ResourcesAvailable","message":"All resources are available","lastTransitionTime":%[1]q,"observedGeneration":%[2]d}]}}`,
			stamp, u.GetGeneration())
		_, err := s.dyn.Resource(works).Namespace(cluster).Patch(ctx, u.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	})
	began := time.Now()
	require.Eventually(s.t, func() bool {
		set, err := typed.Get[workv1alpha1.ManifestWorkReplicaSet](s.t.Context(), s.dyn, replicaSets, "default", "web")
		return err == nil && apimeta.IsStatusConditionTrue(set.Status.Conditions, workv1alpha1.ConditionPlacementRolledOut) && set.Status.Summary.Available == fleetSize
	}, patience, 10*time.Millisecond)
	return time.Since(began)
}

// record is a line of the audit log.
type record struct {
	Verb      string
	UserAgent string
	ObjectRef struct{ Resource, Subresource, Namespace, Name string }
	Response  struct{ Code int } `json:"responseStatus"`
}

// writes of the hub from a place in the audit log on, as "verb resource", counted.
func (s *scene) writes(from int64) map[string]int {
	s.t.Helper()
	file, err := os.Open(s.audit)
	require.NoError(s.t, err)
	defer func() { _ = file.Close() }()
	_, err = file.Seek(from, 0)
	require.NoError(s.t, err)
	out := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r record
		require.NoError(s.t, json.Unmarshal(lines.Bytes(), &r))
		if strings.HasPrefix(r.UserAgent, "ocm-hub/") && r.Response.Code < http.StatusMultipleChoices && !strings.HasSuffix(r.ObjectRef.Resource, "reviews") {
			out[strings.TrimSuffix(r.Verb+" "+r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")]++
		}
	}
	require.NoError(s.t, lines.Err())
	return out
}

func (s *scene) mark() int64 {
	s.t.Helper()
	info, err := os.Stat(s.audit)
	require.NoError(s.t, err)
	return info.Size()
}

// settle waits until the hub has written nothing for a while.
func (s *scene) settle() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		from := s.mark()
		<-time.After(3 * time.Second)
		return len(s.writes(from)) == 0
	}, patience, time.Millisecond)
}

func (s *scene) resident() int64 {
	s.t.Helper()
	pids := budget.Processes(s.t, s.program)
	require.Len(s.t, pids, 1)
	return budget.Resident(s.t, pids[0])
}

func TestASetReachesAThousandClustersWithinItsBudgets(t *testing.T) {
	b := budget.Open(t, path)
	s := newScene(t)
	puts := budget.LeasePuts(t, s.Config)
	s.prepare()
	s.settle()
	t.Logf("before: %.1f MiB", float64(s.resident())/(1<<20))

	began := s.mark()
	b.Time("created", []time.Duration{s.deploy("one")}, puts)
	b.Time("changed", []time.Duration{s.deploy("two")}, puts)
	b.Time("rolledOut", []time.Duration{s.report()}, puts)
	s.settle()
	total := 0
	for what, n := range s.writes(began) {
		t.Logf("%6d %s", n, what)
		if !strings.HasSuffix(what, " events") {
			total += n
		}
	}
	b.Count("writesEach", float64(total)/fleetSize)
	b.Count("statusWrites", float64(s.writes(began)["patch manifestworkreplicasets/status"]))

	began = s.mark()
	<-time.After(window)
	atRest := 0
	for what, n := range s.writes(began) {
		t.Logf("at rest: %6d %s", n, what)
		atRest += n
	}
	b.Count("writesAtRest", float64(atRest))
	b.Memory("hubResident", s.resident())
	b.Complete()
}
