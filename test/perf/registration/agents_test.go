// SPDX-License-Identifier: Apache-2.0

//go:build perf

package registration

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/fakefleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

const (
	// duration of leases when the hub goes away, in seconds. The hub stays away for five
	// durations, as in five minutes with the default.
	duration = 12
	outage   = 5 * duration * time.Second
)

// fiveHundredAgents joins full agents, each with its own certificate and connection,
// counts what that costs, observes them at rest, and takes the hub away from them. A
// shortened run has a hundred agents, and keeps the hub.
func fiveHundredAgents(t *testing.T, b *budget.File) {
	s := newRun(t)
	put := budget.LeasePuts(t, s.Config) / budget.Renewals
	f := s.fleet()
	joining := budget.Sized(100, 20)
	all := names("c", joining*budget.Repetitions)
	require.NoError(t, f.Prepare(all...))
	person, err := fakefleet.NewPerson(s.Config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	letting := make(chan error, 1)
	go func() { letting <- person.AcceptAll(ctx, scene.AtOnce) }()

	began := s.Mark()
	var took []time.Duration
	for i := range budget.Repetitions {
		from := time.Now()
		s.each(all[i*joining:(i+1)*joining], f.Join)
		took = append(took, time.Since(from))
		t.Logf("%d agents joined in %s", joining, took[i].Round(time.Millisecond))
	}
	b.Rate("joinedPerSecond", joining, took, put)
	cancel()
	require.NoError(t, <-letting)
	s.settle()
	s.costs(b, began, len(all))

	began = s.Mark()
	// Leases are renewed once a minute; with many agents, half a minute is enough to see
	// some renewals.
	<-time.After(budget.Sized(30*time.Second, time.Minute))
	s.require("at rest, only leases are written", s.idleWrites(began))
	b.Count("requestsPerRenewal", s.renewals(began))

	if !testing.Short() {
		s.shorten(all)
		s.takeAway(b, f, len(all))
	}
	s.require("no cluster is Unknown", s.unknown())
}

// costs counts the writes that one registration takes.
func (s *run) costs(b *budget.File, from int64, n int) {
	s.t.Helper()
	writes, events := 0, 0
	by := map[string]int{}
	for _, r := range s.Since(from) {
		from := scene.Sender(r)
		switch {
		case !r.Writes() || from == scene.Kubernetes || from == scene.Node || r.Object.Resource == "leases" && r.Verb != "create" || r.Reviews():
		case r.Object.Resource == "events":
			events++
		default:
			writes++
			by[from+": "+r.What()]++
		}
	}
	for what, n := range by {
		s.t.Logf("%6d %s", n, what)
	}
	b.Count("writesToRegister", float64(writes)/float64(n))
	b.Count("eventsToRegister", float64(events)/float64(n))
}

// renewals returns how many requests for leases agents made for each renewal.
func (s *run) renewals(from int64) float64 {
	s.t.Helper()
	all, renewed := 0, 0
	for _, r := range s.Since(from) {
		if scene.Sender(r) != scene.Agent || r.Object.Resource != "leases" {
			continue
		}
		all++
		if r.Verb == "update" && r.Writes() {
			renewed++
		}
	}
	require.Positive(s.t, renewed, "no lease was renewed")
	return float64(all) / float64(renewed)
}

// takeAway pauses the API server for five lease durations, and counts the requests of the
// returning agents.
func (s *run) takeAway(b *budget.File, f *fakefleet.Fleet, n int) {
	s.t.Helper()
	s.away.Store(true)
	defer s.away.Store(false)
	require.NoError(s.t, s.Playground.Kill(playground.APIServer))
	<-time.After(outage)
	require.NoError(s.t, s.Playground.Restart(s.t.Context(), playground.APIServer))
	began := s.Mark()
	watching := total(f, "WATCH", "managedclusters")
	var perSecond []int64
	for range 6 * duration {
		<-time.After(time.Second)
		now := total(f, "WATCH", "managedclusters")
		perSecond = append(perSecond, now-watching)
		watching = now
	}
	busiest := slices.Max(perSecond)
	s.t.Logf("watches begun again in each second after the return: %v", perSecond)
	b.Count("returnsInOneSecond", float64(busiest)/float64(n))
	var unknown int
	for _, r := range s.Since(began) {
		if scene.OfHub(r) && r.What() == "patch managedclusters/status" && r.Writes() {
			unknown++
		}
	}
	b.Count("statusWritesAfterOutage", float64(unknown))
}

// total returns how many requests of a kind agents made that were answered.
func total(f *fakefleet.Fleet, method, resource string) int64 {
	var n int64
	for r, count := range f.Counts() {
		if r.Method == method && r.Resource == resource && r.Code == 200 {
			n += count
		}
	}
	return n
}
