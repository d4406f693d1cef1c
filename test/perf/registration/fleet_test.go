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
)

// idle is how long the hub rests before its memory is read.
const idle = time.Minute

func TestRegistrationKeepsItsBudgets(t *testing.T) {
	b := budget.Open(t, path)
	defer b.Complete()
	t.Run("agents", func(t *testing.T) { fiveHundredAgents(t, b.In(t)) })
	t.Run("fleet", func(t *testing.T) { fourThousandClusters(t, b.In(t)) })
}

// fourThousandClusters accepts clusters that are there already, then measures
// the hub that holds them. Agents are attached: they report and renew on a
// shared connection, without certificates. The fleet is made once; the rate is
// the median of five batches of its first clusters. A shortened run has no others,
// reads no memory, and does not time the restart.
func fourThousandClusters(t *testing.T, b *budget.File) {
	cpu := budget.CPU(t)
	s := newScene(t)
	put := budget.LeasePuts(t, s.Config) / budget.Renewals
	person, err := fakefleet.NewPerson(s.Config)
	require.NoError(t, err)

	batch := budget.Sized(150, 60)
	all := names("c", budget.Sized(4000, budget.Repetitions*batch))
	s.create(all)
	var took []time.Duration
	for i := range budget.Repetitions {
		took = append(took, s.letIn(person, all[i*batch:(i+1)*batch]))
	}
	b.Rate("acceptedPerSecond", batch, took, put)
	s.letIn(person, all[budget.Repetitions*batch:])

	require.NoError(t, s.fleet().Attach(t.Context(), all...))
	s.settle() // the taints of all have gone
	s.resident(b, "hubResident")

	began := s.mark()
	late := names("late", 1)
	s.create(late)
	took = []time.Duration{s.restart(person, late)}
	if !testing.Short() {
		b.Time("hubRestart", took, cpu)
	}
	s.resident(b, "hubResidentRestarted")
	s.require("a restart of the hub writes nothing for clusters that are as they should be", s.idleWrites(began, "late-0000"))
	s.require("no cluster is Unknown", s.unknown())
}

// resident checks the memory of the hub at rest, in a whole run.
func (s *scene) resident(b *budget.File, name string) {
	s.t.Helper()
	if testing.Short() {
		return
	}
	<-time.After(idle)
	b.Memory(name, budget.Resident(s.t, s.pid()))
}

// letIn accepts clusters and waits until the hub has given each its place: it
// says so last, after namespace and rights, and the lease is there.
func (s *scene) letIn(person *fakefleet.Person, names []string) time.Duration {
	s.t.Helper()
	accepted := s.expect(clusters, metav1.ListOptions{}, names, acceptedName)
	leased := s.expect(leases, metav1.ListOptions{FieldSelector: "metadata.name=" + clusterv1.LeaseName}, names, leaseOf)
	began := time.Now()
	s.each(names, person.Accept)
	accepted()
	leased()
	took := time.Since(began)
	s.t.Logf("%d clusters accepted in %s, hub %.1f MiB", len(names), took.Round(time.Millisecond), float64(budget.Resident(s.t, s.pid()))/(1<<20))
	s.placed(names)
	return took
}

// restart kills the hub's process, accepts clusters while it is away, and
// returns how long it takes until these have their place and the new process
// has gone through all others: until it rests.
func (s *scene) restart(person *fakefleet.Person, names []string) time.Duration {
	s.t.Helper()
	accepted := s.expect(clusters, metav1.ListOptions{}, names, acceptedName)
	old := s.pid()
	process, err := os.FindProcess(old)
	require.NoError(s.t, err)
	began := time.Now()
	require.NoError(s.t, process.Kill())
	require.Eventually(s.t, func() bool {
		pids := budget.Processes(s.t, s.program)
		return len(pids) == 1 && pids[0] != old
	}, patience, 10*time.Millisecond)
	s.t.Logf("a new process after %s", time.Since(began))
	require.Eventually(s.t, func() bool {
		return s.everyone(names, func(name string) error { return person.Accept(s.t.Context(), name) }) == nil
	}, patience, 200*time.Millisecond)
	s.t.Logf("admission answers after %s", time.Since(began))
	accepted()
	s.t.Logf("the first cluster is accepted after %s", time.Since(began))
	steady := budget.Rests(s.t, s.pid(), began)
	return steady
}

func (s *scene) everyone(names []string, f func(string) error) error {
	for _, name := range names {
		if err := f(name); err != nil {
			return err
		}
	}
	return nil
}
