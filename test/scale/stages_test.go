// SPDX-License-Identifier: Apache-2.0

//go:build perf

package scale

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/fakefleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
	"github.com/kubectl-ocm/kubectl-ocm/test/scale/report"
)

// own returns the private memory of this process, after all that can be freed is.
func (s *run) own() int64 {
	s.t.Helper()
	debug.FreeOSMemory()
	usage, err := memory.Of(os.Getpid())
	require.NoError(s.t, err)
	return usage.Anon
}

// letIn approves and accepts who asks, until the returned function is called.
func (s *run) letIn() func() {
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.person.AcceptAll(ctx, scene.AtOnce) }()
	return func() {
		cancel()
		require.NoError(s.t, <-ended)
	}
}

// registration joins all clusters.
func (s *run) registration(stage *report.Stage) {
	all := names()
	require.NoError(s.t, s.fleet.Prepare(all...))
	before := s.own()
	leave := s.letIn()
	joined := report.Plot{File: "joined.svg", Title: "Clusters that have joined", Unit: "number"}
	line := report.Line{Name: "available"}
	ctx, cancel := context.WithCancel(s.t.Context())
	drawn := make(chan struct{})
	go func() {
		defer close(drawn)
		for ctx.Err() == nil {
			line.Points = append(line.Points, report.Point{At: s.since(), Value: float64(s.watch.available())})
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}()
	began := time.Now()
	took := s.timed(len(all), func(ctx context.Context, i int) error { return s.fleet.Join(ctx, all[i]) })
	whole := time.Since(began)
	cancel()
	<-drawn
	leave()
	s.Settle(quiet)
	joined.Lines = []report.Line{line}
	s.report.Plots = append(s.report.Plots, joined)
	stage.Add("clusters joined", "%d in %s: %.1f a second", len(all), whole.Round(time.Second), float64(len(all))/whole.Seconds())
	stage.Add("memory of one simulated agent", "%d KiB (RssAnon of the process of all agents)", (s.own()-before)/int64(len(all))/1024)
	stage.Times = []report.Times{{What: "a join, from the first request until the cluster is available", Took: took}}
}

// steady observes the fleet at rest.
func (s *run) steady(stage *report.Stage) {
	mark, lost := s.Mark(), s.watch.lost.Load()
	puts := func() int64 { return s.answered("PUT", "leases") }
	renewed, began := puts(), time.Now()
	<-time.After(*steadyTime)
	stage.Add("observed for", "%s", steadyTime)
	stage.Add("clusters that are falsely Unknown", "%d", s.watch.lost.Load()-lost)
	stage.Add("clusters available at the end", "%d of %d", s.watch.available(), len(names()))
	stage.Add("renewals of leases a second", "%.2f", float64(puts()-renewed)/time.Since(began).Seconds())
	written := 0
	for _, r := range s.Since(mark) {
		if r.Writes() && !r.Reviews() && (scene.OfHub(r) || scene.Sender(r) == scene.Agent) {
			written++
		}
	}
	stage.Add("writes of hub and agents, leases apart", "%d", written)
}

// answered returns how many requests of a kind agents made with success.
func (s *run) answered(method, resource string) int64 {
	return s.fleet.Counts()[fakefleet.Request{Method: method, Resource: resource, Code: 200}]
}

// outage takes the API server away, and watches all agents come back.
func (s *run) outage(stage *report.Stage) {
	open := s.openWatches()
	s.away.Store(true)
	require.NoError(s.t, s.Playground.Kill(playground.APIServer))
	<-time.After(*outageTime)
	watching := s.answered("WATCH", "managedclusters")
	restarted := time.Now()
	require.NoError(s.t, s.Playground.Restart(s.t.Context(), playground.APIServer))
	served := time.Since(restarted)
	line := report.Line{Name: "watches begun"}
	var perSecond []int64
	began, last := time.Now(), watching
	for last < watching+int64(len(names())) && time.Since(began) < scene.Patience {
		<-time.After(time.Second)
		now := s.answered("WATCH", "managedclusters")
		perSecond = append(perSecond, now-last)
		line.Points = append(line.Points, report.Point{At: s.since(), Value: float64(now - last)})
		last = now
	}
	back := time.Since(began)
	require.Eventually(s.t, func() bool { return s.openWatches() >= open }, scene.Patience, time.Second)
	whole := time.Since(began)
	s.away.Store(false)
	s.Settle(quiet)
	s.report.Plots = append(s.report.Plots, report.Plot{
		File: "reconnect.svg", Title: "Agents that watch their cluster again", Unit: "in each second", Lines: []report.Line{line},
	})
	stage.Add("API server away for", "%s, and %s until it served", outageTime, served.Round(100*time.Millisecond))
	stage.Add("agents watch their cluster again", "%d watches for %d agents within %s of the first answer", last-watching, len(names()), back.Round(time.Second))
	stage.Add("as many open watches as before", "within %s of the first answer", whole.Round(time.Second))
	stage.Add("most in one second", "%d", slices.Max(append(perSecond, 0)))
	stage.Add("clusters available afterwards", "%d of %d", s.watch.available(), len(names()))
}

// restart kills the hub's process, and waits until the next one has checked everything and
// serves one more cluster.
func (s *run) restart(stage *report.Stage) {
	old, mark := s.PID(), s.Mark()
	process, err := os.FindProcess(old)
	require.NoError(s.t, err)
	began := time.Now()
	require.NoError(s.t, process.Kill())
	require.Eventually(s.t, func() bool {
		pids := s.PIDs()
		return len(pids) == 1 && pids[0] != old
	}, scene.Patience, 10*time.Millisecond)
	stage.Add("until there is a new process", "%s", time.Since(began).Round(10*time.Millisecond))
	rests := budget.Rests(s.t, s.PID(), began)
	stage.Add("until it has checked the whole fleet, and rests", "%s", rests.Round(10*time.Millisecond))
	written := map[string]int{}
	for _, r := range s.Since(mark) {
		if r.Writes() && !r.Reviews() && scene.OfHub(r) {
			written[r.What()]++
		}
	}
	stage.Add("its writes meanwhile", "%s", fmt.Sprint(written))
	leave := s.letIn()
	began = time.Now()
	require.NoError(s.t, s.fleet.Join(s.t.Context(), "late-0"))
	stage.Add("one more cluster joins in", "%s", time.Since(began).Round(time.Millisecond))
	leave()
}
