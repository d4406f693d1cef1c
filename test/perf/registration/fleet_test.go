// SPDX-License-Identifier: Apache-2.0

//go:build perf

package registration

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/fakefleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
)

// idle is how long the hub rests before its memory is read: it takes minutes until the
// runtime forces a collection and returns the freed memory.
const idle = 5 * time.Minute

func TestRegistrationKeepsItsBudgets(t *testing.T) {
	b := budget.Open(t, path)
	defer b.Complete()
	t.Run("agents", func(t *testing.T) { fiveHundredAgents(t, b.In(t)) })
	t.Run("fleet", func(t *testing.T) { fourThousandClusters(t, b.In(t)) })
}

// fourThousandClusters accepts existing clusters, then measures the hub that manages
// them. Agents are attached: they report and renew on a shared connection, without
// certificates. The fleet is created once; the rate is the median of five batches of its
// first clusters. A shortened run has only those, reads no memory, and does not time the
// restart.
func fourThousandClusters(t *testing.T, b *budget.File) {
	cpu := budget.CPU(t)
	s := newRun(t)
	put := budget.LeasePuts(t, s.Config) / budget.Renewals
	person, err := fakefleet.NewPerson(s.Config)
	require.NoError(t, err)

	batch := budget.Sized(150, 60)
	all := names("c", budget.Sized(4000, budget.Repetitions*batch))
	s.create(all)
	var took []time.Duration
	for i := range budget.Repetitions {
		took = append(took, s.accept(person, all[i*batch:(i+1)*batch]))
	}
	b.Rate("acceptedPerSecond", batch, took, put)
	if rest := all[budget.Repetitions*batch:]; len(rest) > 0 {
		s.accept(person, rest)
	}

	require.NoError(t, s.fleet().Attach(t.Context(), all...))
	s.settle() // the taints of all have gone
	s.memory(b, "hub")

	began := s.Mark()
	late := names("late", 1)
	s.create(late)
	took = []time.Duration{s.restart(person, late)}
	if !testing.Short() {
		b.Time("hubRestart", took, cpu)
	}
	s.memory(b, "hubRestarted")
	s.require("a restart of the hub writes nothing for clusters that are as they should be", s.idleWrites(began, "late-0000"))
	s.require("no cluster is Unknown", s.unknown())
}

// memory checks the memory of the hub at rest, in a full run.
func (s *run) memory(b *budget.File, name string) {
	s.t.Helper()
	if testing.Short() {
		return
	}
	<-time.After(idle)
	b.Memory(name, s.Memory())
}

// accept accepts clusters and waits until the hub has set each up: it reports that last,
// after namespace and rights, and the lease exists.
func (s *run) accept(person *fakefleet.Person, names []string) time.Duration {
	s.t.Helper()
	accepted := s.expect(clusters, metav1.ListOptions{}, names, acceptedName)
	leased := s.expect(leases, metav1.ListOptions{FieldSelector: "metadata.name=" + clusterv1.LeaseName}, names, leaseOf)
	began := time.Now()
	s.each(names, person.Accept)
	accepted()
	leased()
	took := time.Since(began)
	s.t.Logf("%d clusters accepted in %s, hub %s", len(names), took.Round(time.Millisecond), s.Memory())
	s.placed(names)
	return took
}

// restart kills the hub's process, accepts clusters while it is away, and returns how
// long it takes until these are set up and the new process has checked all others, that
// is, until it rests.
func (s *run) restart(person *fakefleet.Person, names []string) time.Duration {
	s.t.Helper()
	accepted := s.expect(clusters, metav1.ListOptions{}, names, acceptedName)
	old := s.PID()
	process, err := os.FindProcess(old)
	require.NoError(s.t, err)
	began := time.Now()
	require.NoError(s.t, process.Kill())
	require.Eventually(s.t, func() bool {
		pids := s.PIDs()
		return len(pids) == 1 && pids[0] != old
	}, scene.Patience, 10*time.Millisecond)
	s.t.Logf("a new process after %s", time.Since(began))
	require.Eventually(s.t, func() bool {
		return s.everyone(names, func(name string) error { return person.Accept(s.t.Context(), name) }) == nil
	}, scene.Patience, 200*time.Millisecond)
	s.t.Logf("admission answers after %s", time.Since(began))
	accepted()
	s.t.Logf("the first cluster is accepted after %s", time.Since(began))
	steady := budget.Rests(s.t, s.PID(), began)
	return steady
}

func (s *run) everyone(names []string, f func(string) error) error {
	for _, name := range names {
		if err := f(name); err != nil {
			return err
		}
	}
	return nil
}
