// SPDX-License-Identifier: Apache-2.0

//go:build perf

package scale

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/test/fakefleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
	"github.com/kubectl-ocm/kubectl-ocm/test/scale/report"
)

var (
	clusterCount = flag.Int("clusters", 20, "number of managed clusters")
	steadyTime   = flag.Duration("steady", 30*time.Minute, "how long the fleet is observed at rest")
	outageTime   = flag.Duration("outage", time.Minute, "how long the API server of the hub is away")
	seed         = flag.Uint64("seed", 1, "determines what differs between the clusters")
	out          = flag.String("out", "", "folder of the report; none is written without it")
)

const (
	// quiet is how long the hub has to send nothing to count as settled.
	quiet = 5 * time.Second
	// placementCount and addOnCount are how many of each the fleet gets.
	placementCount, addOnCount = 100, 5
)

// run is a hub with a fleet, and the report about it.
type run struct {
	*scene.Scene
	t      *testing.T
	fleet  *fakefleet.Fleet
	person *fakefleet.Person
	http   *http.Client
	report report.Report
	watch  *availability
	// away is true while the API server is away on purpose, and troubles counts the failed
	// requests of agents at other times.
	away     atomic.Bool
	troubles atomic.Int64
	samples  sync.Mutex
}

func TestAFleet(t *testing.T) {
	s := newRun(t)
	s.stage("No clusters", func(*report.Stage) { s.Settle(quiet) })
	s.stage("Registration", s.registration)
	s.stage("Steady state", s.steady)
	s.stage("Placements", s.placements)
	s.stage("Progressive rollout of a work", s.rollout)
	s.stage("Hub outage and mass reconnect", s.outage)
	s.stage("Restart of the hub controller", s.restart)
	s.stage("Five add-ons", s.addOns)
}

func newRun(t *testing.T) *run {
	t.Helper()
	s := &run{t: t}
	// The processes of Kubernetes collect garbage as they do by default, not as seldom as in
	// tests: their memory is a result. The limit keeps a large fleet from ending the machine.
	usual := func(c *playground.Config) { c.Env = []string{"GOGC=100", "GOMEMLIMIT=14GiB"} }
	load := loadAverage(t)
	s.Scene = scene.With(t, []harness.Option{usual}, audit.OnlyResources, audit.NotReads, audit.NotLeases)
	bootstrap := s.As(t, hub.Namespace, hub.BootstrapServiceAccount)
	bootstrap.CAData = s.Playground.CA
	var err error
	s.fleet, err = fakefleet.New(fakefleet.Options{
		Bootstrap: bootstrap, Seed: *seed, Works: true, AddOns: true, Trouble: s.trouble,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.fleet.Close()) })
	s.person, err = fakefleet.NewPerson(s.Config)
	require.NoError(t, err)
	s.http, err = rest.HTTPClientFor(s.Config)
	require.NoError(t, err)
	s.report = report.Report{
		Title:     fmt.Sprintf("A hub with %d clusters", *clusterCount),
		Command:   fmt.Sprintf("make scale CLUSTERS=%d STEADY=%s OUTAGE=%s SEED=%d", *clusterCount, *steadyTime, *outageTime, *seed),
		Method:    method,
		Machine:   machine(t, load),
		Began:     time.Now(),
		Processes: []string{"hub", "kube-apiserver", "etcd", "agents and test"},
	}
	s.sampling()
	s.watch = s.observe()
	return s
}

// trouble counts a failed request of an agent, and logs the first ones.
func (s *run) trouble(cluster string, err error) {
	const logged = 20
	if !s.away.Load() && s.troubles.Add(1) <= logged {
		s.t.Logf("agent of %s: %v", cluster, err)
	}
}

// since returns the time since the begin of the run.
func (s *run) since() time.Duration { return time.Since(s.report.Began) }

// stage runs one stage, adds it to the report and writes the report: a run that fails later has
// one of what came before.
func (s *run) stage(name string, do func(*report.Stage)) {
	s.t.Helper()
	one := &report.Stage{Name: name, From: s.since()}
	s.report.Stages = append(s.report.Stages, one)
	mark, before, unknown, troubles := s.Mark(), s.metrics(), s.watch.lost.Load(), s.troubles.Load()
	s.t.Logf("%s begins", name)
	do(one)
	one.To = s.since()
	one.Requests = s.requests(mark, before)
	s.traffic(one, before)
	s.hubState(one)
	one.Add("load averages of the machine at the end", "%s", loadAverage(s.t))
	one.Add("times a cluster stopped being Available", "%d", s.watch.lost.Load()-unknown)
	one.Add("failed requests of agents, those of an outage apart", "%d", s.troubles.Load()-troubles)
	for _, f := range one.Facts {
		s.t.Logf("%s: %s: %s", name, f.What, f.Value)
	}
	if *out != "" {
		s.samples.Lock()
		defer s.samples.Unlock()
		require.NoError(s.t, s.report.Write(*out))
	}
}

// names returns the clusters of the fleet.
func names() []string {
	all := make([]string, *clusterCount)
	for i := range all {
		all[i] = fmt.Sprintf("c-%05d", i)
	}
	return all
}

// timed runs do for every number below n, several at a time, and returns how long each took.
func (s *run) timed(n int, do func(ctx context.Context, i int) error) []time.Duration {
	s.t.Helper()
	took := make([]time.Duration, n)
	s.Each(0, n, func(ctx context.Context, i int) error {
		began := time.Now()
		err := do(ctx, i)
		took[i] = time.Since(began)
		return err
	})
	return took
}

// method is the text of the report about how it was measured.
const method = `One etcd (no fsync), one kube-apiserver, one kube-controller-manager and one ocm-hub in the compact
layout run as processes on this machine, beside the simulated agents (test/fakefleet), which are one
process with the test itself. All requests are real: each agent joins with a key and a certificate of
its own and has its own TLS connection with three watches (its ManagedCluster, its ManifestWorks, its
ManagedClusterAddOns). Sixteen agents join at a time; a user approves and accepts each with two
requests. Leases last 60 s, as by default.

Times are wall-clock times. Writes are counted by the audit log, those of leases apart; what the
bodies of requests take in bytes is a metric of kube-apiserver, which knows no senders (the rows of
"all"). The memory of a process is RssAnon and VmRSS of /proc, read every two seconds, its CPU time
that of /proc.`
