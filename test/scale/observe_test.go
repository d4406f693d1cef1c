// SPDX-License-Identifier: Apache-2.0

//go:build perf

package scale

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
	"github.com/kubectl-ocm/kubectl-ocm/test/scale/metrics"
	"github.com/kubectl-ocm/kubectl-ocm/test/scale/report"
)

// sampleEvery is how often processes are looked at.
const sampleEvery = 2 * time.Second

var clusters = clusterv1.GroupVersion.WithResource("managedclusters")

// loadAverage returns the load of the machine before the run adds its own.
func loadAverage(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("/proc/loadavg")
	require.NoError(t, err)
	return strings.Join(strings.Fields(string(raw))[:3], ", ")
}

// machine describes what the run has.
func machine(t *testing.T, load string) []report.Fact {
	t.Helper()
	read := func(file, pattern string) string {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		m := regexp.MustCompile(pattern).FindStringSubmatch(string(raw))
		if m == nil {
			return "not known"
		}
		return m[1]
	}
	return []report.Fact{
		{What: "processor", Value: read("/proc/cpuinfo", `model name\s*: (.*)`)},
		{What: "cores", Value: fmt.Sprint(runtime.NumCPU())},
		{What: "memory", Value: read("/proc/meminfo", `MemTotal:\s*(.*)`)},
		{What: "kernel", Value: read("/proc/version", `Linux version (\S+)`)},
		{What: "load averages before the run (1, 5 and 15 minutes)", Value: load},
		{What: "Go", Value: runtime.Version()},
		{What: "date", Value: time.Now().UTC().Format(time.DateOnly)},
	}
}

// processes returns the IDs of the measured processes in the order of the report, 0 for one that
// does not run.
func (s *run) processes() []int {
	hub, state := 0, playground.Health{}
	if pids := s.PIDs(); len(pids) == 1 {
		hub = pids[0]
	}
	// A cluster without state has no processes.
	state, _ = playground.Inspect(s.Playground.Dir)
	of := func(c playground.Component) int { return state.PID(s.Playground.Dir, c) }
	return []int{hub, of(playground.APIServer), of(playground.Etcd), os.Getpid()}
}

// sampling records the load of the processes until the test ends.
func (s *run) sampling() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			s.sample()
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	s.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (s *run) sample() {
	one := report.Sample{At: s.since()}
	for _, pid := range s.processes() {
		var load *report.Load
		// A process may end between two looks.
		if usage, err := memory.Of(pid); err == nil && pid != 0 {
			if cpu, err := budget.CPUTimeOf(pid); err == nil {
				load = &report.Load{CPU: cpu, Anon: usage.Anon, Resident: usage.Resident}
			}
		}
		one.Of = append(one.Of, load)
	}
	s.samples.Lock()
	defer s.samples.Unlock()
	s.report.Samples = append(s.report.Samples, one)
}

// metrics reads those of the API server.
func (s *run) metrics() metrics.Set {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.Config.Host+"/metrics", nil)
	require.NoError(s.t, err)
	answer, err := s.http.Do(request)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, answer.StatusCode, "%s", raw)
	return metrics.Parse(string(raw))
}

// requests returns the writes since a mark by sender, and the bytes by kind since a reading. After
// a restart of the API server, the bytes are those since then.
func (s *run) requests(mark int64, before metrics.Set) []report.Requests {
	s.t.Helper()
	counted := map[[2]string]int64{}
	for _, r := range s.Since(mark) {
		if r.Writes() && !r.Reviews() {
			counted[[2]string{sender(r), r.What()}]++
		}
	}
	var out []report.Requests
	for key, n := range counted {
		out = append(out, report.Requests{By: key[0], What: key[1], Count: n, Bytes: -1})
	}
	now, labels := s.metrics(), []string{"verb", "resource"}
	const size = "apiserver_request_body_size_bytes"
	bytes := metrics.Since(before.Sum(size+"_sum", labels...), now.Sum(size+"_sum", labels...))
	count := metrics.Since(before.Sum(size+"_count", labels...), now.Sum(size+"_count", labels...))
	for key, n := range count {
		out = append(out, report.Requests{By: "all", What: key, Count: int64(n), Bytes: int64(bytes[key])})
	}
	return out
}

// sender returns who sent a request; the test itself is one of the senders.
func sender(r audit.Request) string {
	by := scene.Sender(r)
	if strings.HasPrefix(by, "scale.test/") {
		return "test"
	}
	return by
}

// traffic adds what was written and sent since a reading of the metrics.
func (s *run) traffic(stage *report.Stage, before metrics.Set) {
	s.t.Helper()
	written := map[string]int64{}
	for _, q := range stage.Requests {
		written[q.By] += q.Count
	}
	for _, by := range []string{scene.Hub, scene.Agent, scene.Person, scene.Kubernetes} {
		stage.Add("writes by "+by+", leases apart", "%d, for each cluster %.2f", written[by], float64(written[by])/float64(*clusterCount))
	}
	now := s.metrics()
	for _, size := range []struct{ what, metric string }{
		{"bodies of writes, leases included", "apiserver_request_body_size_bytes_sum"},
		{"answers to requests", "apiserver_response_sizes_sum"},
		{"watch events sent", "apiserver_watch_events_sizes_sum"},
	} {
		grown := total(metrics.Since(before.Sum(size.metric, "verb", "resource"), now.Sum(size.metric, "verb", "resource")))
		stage.Add(size.what, "%s, for each cluster %.1f KiB", memory.MiB(int64(grown)), grown/1024/float64(*clusterCount))
	}
}

// total adds up.
func total(set map[string]float64) (n float64) {
	for _, v := range set {
		n += v
	}
	return n
}

// hubState adds what the API server holds at the end of a stage.
func (s *run) hubState(stage *report.Stage) {
	s.t.Helper()
	now := s.metrics()
	stage.Add("size of the etcd database", "%s", memory.MiB(int64(total(now.Sum("apiserver_storage_size_bytes")))))
	stage.Add("stored objects, counted at most a minute before", "%.0f", total(now.Sum("apiserver_resource_objects", "resource")))
	stage.Add("open watches", "%.0f", s.openWatches())
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.processes()[1]))
	require.NoError(s.t, err)
	stage.Add("open files of kube-apiserver", "%d", len(files))
}

// openWatches returns how many watches the API server serves.
func (s *run) openWatches() float64 {
	s.t.Helper()
	return s.metrics().Sum("apiserver_longrunning_requests", "verb")["WATCH"]
}

// availability follows the condition Available of all clusters.
type availability struct {
	mu sync.Mutex
	is map[string]bool
	// lost counts how often a cluster that was available stopped being so.
	lost atomic.Int64
}

// observe follows the clusters until the test ends.
func (s *run) observe() *availability {
	a := &availability{is: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			a.follow(ctx, s)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	})
	s.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return a
}

func (a *availability) follow(ctx context.Context, s *run) {
	w, err := s.Dyn.Resource(clusters).Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		u, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return
		}
		if mc, err := typed.FromUnstructured[clusterv1.ManagedCluster](u); err == nil {
			a.note(mc)
		}
	}
}

func (a *availability) note(mc *clusterv1.ManagedCluster) {
	now := apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionAvailable)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.is[mc.Name] && !now {
		a.lost.Add(1)
	}
	a.is[mc.Name] = now
}

// available returns how many clusters are.
func (a *availability) available() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, is := range a.is {
		if is {
			n++
		}
	}
	return n
}
