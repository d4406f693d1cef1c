// SPDX-License-Identifier: Apache-2.0

//go:build perf

package placement

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

const (
	// path of the budgets.
	path = "../placement.yaml"
	// workers is how many requests of the test are on their way at a time.
	workers = 16
	// patience bounds every wait, window is how long the hub is watched at rest.
	patience, window = 10 * time.Minute, 15 * time.Second
	// many is how many placements there are.
	many = 1000
	// tolerant lets placements select clusters that nobody has accepted.
	tolerant = `"tolerations":[{"key":"cluster.open-cluster-management.io/unreachable","operator":"Exists"}]`
)

var (
	clusters   = clusterv1.GroupVersion.WithResource("managedclusters")
	placements = clusterv1beta1.GroupVersion.WithResource("placements")
	sets       = clusterv1beta2.GroupVersion.WithResource("managedclustersets")
	bindings   = clusterv1beta2.GroupVersion.WithResource("managedclustersetbindings")
)

// auditPolicy notes every request once, when it has been answered.
const auditPolicy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived","ResponseStarted"],"rules":[
{"level":"None","nonResourceURLs":["*"]},{"level":"None","verbs":["watch"]},{"level":"None","resources":[{"group":"coordination.k8s.io"}]},
{"level":"Metadata"}]}`

// scene is a hub.
type scene struct {
	*harness.Cluster
	t              *testing.T
	dyn            dynamic.Interface
	program, audit string
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

func object(text string, args ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(fmt.Appendf(nil, text, args...)); err != nil {
		panic(err)
	}
	return u
}

// each runs do for the numbers from one to another, several at a time.
func (s *scene) each(from, to int, do func(ctx context.Context, i int) error) {
	s.t.Helper()
	group, ctx := errgroup.WithContext(s.t.Context())
	group.SetLimit(workers)
	for i := from; i < to; i++ {
		group.Go(func() error { return do(ctx, i) })
	}
	require.NoError(s.t, group.Wait())
}

// grow makes clusters, with what agents report.
func (s *scene) grow(from, to int) {
	s.t.Helper()
	s.each(from, to, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("c-%05d", i)
		mc := object(`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":%q,"labels":{"region":"r%d","vendor":"v%d"}}}`, name, i%12, i%3)
		if _, err := s.dyn.Resource(clusters).Create(ctx, mc, metav1.CreateOptions{}); err != nil {
			return err
		}
		body := fmt.Appendf(nil, `{"status":{"version":{"kubernetes":"v1.36.3"},"capacity":{"cpu":"%[1]d","memory":"%[1]dGi","pods":"330"},"allocatable":{"cpu":"%[1]d","memory":"%[1]dGi","pods":"330"},
			"clusterClaims":[{"name":"id.k8s.io","value":"%[2]s-id"},{"name":"region","value":"r%[3]d"}]}}`, 8+i%64, name, i%12)
		_, err := s.dyn.Resource(clusters).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	})
}

// rest waits until the sets tell how many clusters they have, which they do at most
// once in ten seconds, and the hub has nothing more to send.
func (s *scene) rest(clusters int) {
	s.t.Helper()
	want := fmt.Sprintf("%d ManagedClusters selected", clusters)
	for _, name := range []string{clusterv1beta2.DefaultClusterSet, clusterv1beta2.GlobalClusterSet} {
		require.Eventually(s.t, func() bool {
			set, err := s.dyn.Resource(sets).Get(s.t.Context(), name, metav1.GetOptions{})
			require.NoError(s.t, err)
			conditions, _, err := unstructured.NestedSlice(set.Object, "status", "conditions")
			require.NoError(s.t, err)
			return slices.ContainsFunc(conditions, func(c any) bool {
				condition, _ := c.(map[string]any)
				return condition["message"] == want
			})
		}, patience, time.Second, "set %s", name)
	}
	s.settle()
}

// decided makes placements and returns how long it takes until each says that all
// its decisions are there.
func (s *scene) decided(names []string, spec string) time.Duration {
	s.t.Helper()
	api := s.dyn.Resource(placements).Namespace("default")
	list, err := api.List(s.t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(s.t, err)
	w, err := api.Watch(s.t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(s.t, err)
	defer w.Stop()
	began := time.Now()
	s.each(0, len(names), func(ctx context.Context, i int) error {
		p := object(`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"name":%q},"spec":%s}`, names[i], spec)
		_, err := api.Create(ctx, p, metav1.CreateOptions{})
		return err
	})
	have := map[string]bool{}
	deadline := time.After(patience)
	for len(have) < len(names) {
		select {
		case event := <-w.ResultChan():
			raw, err := json.Marshal(event.Object)
			require.NoError(s.t, err)
			var p clusterv1beta1.Placement
			require.NoError(s.t, json.Unmarshal(raw, &p))
			for _, c := range p.Status.Conditions {
				if c.Reason == clusterv1beta1.ReasonAllDecisionsScheduled {
					have[p.Name] = true
				}
			}
		case <-deadline:
			require.FailNow(s.t, "timed out", "%d of %d placements", len(have), len(names))
		}
	}
	return time.Since(began)
}

// record is a line of the audit log.
type record struct {
	Verb      string
	UserAgent string
	ObjectRef struct{ Resource, Subresource string }
	Response  struct{ Code int } `json:"responseStatus"`
}

// requests of the hub from a place in the audit log on, as "verb resource", counted.
func (s *scene) requests(from int64) map[string]int {
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

// settle waits until the hub has sent nothing for a while.
func (s *scene) settle() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		from := s.mark()
		<-time.After(2 * time.Second)
		return len(s.requests(from)) == 0
	}, patience, time.Millisecond)
}

func (s *scene) resident() int64 {
	s.t.Helper()
	pids := budget.Processes(s.t, s.program)
	require.Len(s.t, pids, 1)
	return budget.Resident(s.t, pids[0])
}

func TestPlacementsAreDecidedWithinTheirBudgets(t *testing.T) {
	b := budget.Open(t, path)
	s := newScene(t)
	puts := budget.LeasePuts(t, s.Config)
	_, err := s.dyn.Resource(bindings).Namespace("default").Create(t.Context(),
		object(`{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSetBinding","metadata":{"name":"default"},"spec":{"clusterSet":"default"}}`), metav1.CreateOptions{})
	require.NoError(t, err)
	s.grow(0, 1000)
	s.rest(1000)
	t.Logf("1,000 clusters: %.1f MiB", float64(s.resident())/(1<<20))
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("p-%04d", i)
	}
	b.Time("thousand", []time.Duration{s.decided(names, `{"numberOfClusters":10,`+tolerant+`}`)}, puts)
	s.settle()
	t.Logf("1,000 placements: %.1f MiB", float64(s.resident())/(1<<20))

	s.grow(1000, 4000)
	s.rest(4000)
	t.Logf("4,000 clusters: %.1f MiB", float64(s.resident())/(1<<20))
	from := s.mark()
	b.Time("large", []time.Duration{s.decided([]string{"all"}, `{`+tolerant+`}`)}, puts)
	s.settle()
	writes := 0
	for what, n := range s.requests(from) {
		t.Logf("%6d %s", n, what)
		if !strings.HasSuffix(what, " events") {
			writes += n
		}
	}
	b.Count("largeWrites", float64(writes))
	from = s.mark()
	<-time.After(window)
	atRest := 0
	for what, n := range s.requests(from) {
		t.Logf("at rest: %6d %s", n, what)
		atRest += n
	}
	b.Count("requestsAtRest", float64(atRest))
	b.Memory("resident", s.resident())
	if !testing.Short() {
		s.grow(4000, 10000)
		s.rest(10000)
		<-time.After(window)
		b.Memory("residentLarge", s.resident())
	}
	b.Complete()
}
