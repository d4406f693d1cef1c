// SPDX-License-Identifier: Apache-2.0

//go:build perf

package registration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/fakefleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

const (
	// path of the budgets.
	path = "../registration.yaml"
	// seed of all fleets.
	seed = 1
	// patience bounds every wait.
	patience = 10 * time.Minute
	// patienceEach is added to it for each cluster that is waited for.
	patienceEach = time.Second / 4
	// workers is how many clusters a person lets in at once.
	workers = 16
)

var (
	clusters = clusterv1.GroupVersion.WithResource("managedclusters")
	leases   = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

// scene is a hub.
type scene struct {
	*harness.Cluster
	t       *testing.T
	dyn     dynamic.Interface
	program string
	audit   string
	// away is true while the API server is taken away on purpose.
	away atomic.Bool
}

// auditPolicy notes every write, and every request for leases, once, when it
// has been answered.
const auditPolicy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived","ResponseStarted"],"rules":[
{"level":"None","nonResourceURLs":["*"]},
{"level":"Metadata","resources":[{"group":"coordination.k8s.io"}]},
{"level":"None","verbs":["get","list","watch"]},
{"level":"Metadata"}]}`

// newScene starts a hub.
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

// pid is the id of the hub's process.
func (s *scene) pid() int {
	s.t.Helper()
	pids := budget.Processes(s.t, s.program)
	require.Len(s.t, pids, 1)
	return pids[0]
}

// fleet makes simulated agents that use a bootstrap token and, attached, the
// administrator's connection.
func (s *scene) fleet() *fakefleet.Fleet {
	s.t.Helper()
	bootstrap := s.As(s.t, hub.Namespace, hub.BootstrapServiceAccount)
	bootstrap.CAData = s.Playground.CA
	f, err := fakefleet.New(fakefleet.Options{Bootstrap: bootstrap, Pool: s.Config, Seed: seed, Trouble: func(cluster string, err error) {
		if !s.away.Load() {
			s.t.Logf("agent of %s: %v", cluster, err)
		}
	}})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, f.Close()) })
	return f
}

func names(prefix string, n int) []string {
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, fmt.Sprintf("%s-%04d", prefix, i))
	}
	return out
}

// each runs f for every name, at most workers at once.
func (s *scene) each(names []string, f func(ctx context.Context, name string) error) {
	s.t.Helper()
	todo := make(chan string)
	failed := make(chan error, workers)
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	for range workers {
		go func() {
			for name := range todo {
				if err := f(ctx, name); err != nil {
					cancel()
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for _, name := range names {
		select {
		case todo <- name:
		case <-ctx.Done():
		}
	}
	close(todo)
	for range workers {
		require.NoError(s.t, <-failed)
	}
}

// create makes ManagedClusters as an agent's bootstrap identity does.
func (s *scene) create(names []string) {
	s.t.Helper()
	bootstrap, err := dynamic.NewForConfig(s.As(s.t, hub.Namespace, hub.BootstrapServiceAccount))
	require.NoError(s.t, err)
	s.each(names, func(ctx context.Context, name string) error {
		u, err := typed.ToUnstructured(&clusterv1.ManagedCluster{
			TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: []clusterv1.ClientConfig{{URL: "https://" + name + ".example:6443"}}},
		})
		if err != nil {
			return err
		}
		_, err = bootstrap.Resource(clusters).Create(ctx, u, metav1.CreateOptions{})
		return err
	})
}

// expect watches a kind until every name was seen as wanted.
func (s *scene) expect(resource schema.GroupVersionResource, o metav1.ListOptions, names []string, wanted func(object map[string]any) string) func() {
	s.t.Helper()
	open := map[string]bool{}
	for _, name := range names {
		open[name] = true
	}
	list, err := s.dyn.Resource(resource).List(s.t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(s.t, err)
	o.ResourceVersion = list.GetResourceVersion()
	w, err := s.dyn.Resource(resource).Watch(s.t.Context(), o)
	require.NoError(s.t, err)
	done := make(chan struct{})
	go func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			if u, ok := event.Object.(interface{ UnstructuredContent() map[string]any }); ok {
				delete(open, wanted(u.UnstructuredContent()))
			}
			if len(open) == 0 {
				close(done)
				return
			}
		}
	}()
	return func() {
		s.t.Helper()
		select {
		case <-done:
		case <-time.After(patience + time.Duration(len(names))*patienceEach):
			require.FailNow(s.t, "timed out", "%d of %d %s are not as wanted", len(open), len(names), resource.Resource)
		}
	}
}

// acceptedName is the name of a ManagedCluster that the hub has accepted.
func acceptedName(o map[string]any) string { return with(o, clusterv1.ConditionHubAccepted) }

func with(o map[string]any, condition string) string {
	raw, err := json.Marshal(o)
	if err != nil {
		return ""
	}
	mc := &clusterv1.ManagedCluster{}
	if json.Unmarshal(raw, mc) != nil || !apimeta.IsStatusConditionTrue(mc.Status.Conditions, condition) {
		return ""
	}
	return mc.Name
}

// leaseOf is the name of the cluster of a lease.
func leaseOf(o map[string]any) string {
	meta, _ := o["metadata"].(map[string]any)
	if meta["name"] != clusterv1.LeaseName {
		return ""
	}
	name, _ := meta["namespace"].(string)
	return name
}

// record is a line of the audit log.
type record struct {
	Verb      string
	UserAgent string
	User      struct{ Username string }
	ObjectRef struct{ Resource, Subresource, Namespace, Name string }
	Response  struct{ Code int } `json:"responseStatus"`
	At        time.Time          `json:"stageTimestamp"`
}

// what is the request in short: "patch managedclusters/status".
func (r record) what() string {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return r.Verb + " " + resource
}

func (r record) writes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.Response.Code < http.StatusMultipleChoices
	}
	return false
}

// records reads the audit log from a place on.
func (s *scene) records(from int64) (out []record) {
	s.t.Helper()
	file, err := os.Open(s.audit)
	require.NoError(s.t, err)
	defer func() { _ = file.Close() }()
	_, err = file.Seek(from, 0)
	require.NoError(s.t, err)
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r record
		require.NoError(s.t, json.Unmarshal(lines.Bytes(), &r))
		out = append(out, r)
	}
	require.NoError(s.t, lines.Err())
	return out
}

// mark is the place in the audit log where what comes from now on begins.
func (s *scene) mark() int64 {
	s.t.Helper()
	info, err := os.Stat(s.audit)
	require.NoError(s.t, err)
	return info.Size()
}
