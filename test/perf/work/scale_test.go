// SPDX-License-Identifier: Apache-2.0

//go:build perf

package work

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

const (
	// manifests of each work.
	manifests = 10
	// foreigners is the number of objects that belong to no work, half Secrets, half
	// Pods.
	foreigners = 20_000
)

var (
	leases  = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

func TestAThousandWorksStayWithinTheBudgets(t *testing.T) {
	p := newProgram(t, budget.Open(t, "../work-scale.yaml"))
	thousand, rounds := budget.Sized(1000, 200), budget.Sized(100, 30)
	p.load("load", thousand)
	p.patiently(func() bool { return p.done("load") == thousand }, "works are not applied")

	var done, back, repaired []time.Duration
	for i := range rounds {
		_, took := p.work(fmt.Sprintf("w-%d", i))
		done = append(done, took)
	}
	for i := range rounds {
		back = append(back, p.restored(fmt.Sprintf("w-%d", i)))
	}
	for i := range rounds {
		repaired = append(repaired, p.corrected(fmt.Sprintf("w-%d", i)))
	}
	unit := p.calibrate()
	p.budgets.Time("createToApplied", done, unit)
	p.budgets.Tail("createToAppliedTail", done, unit)
	p.budgets.Time("deletedToBack", back, unit)
	p.budgets.Time("changedToRepaired", repaired, unit)
	p.budgets.Tail("changedToRepairedTail", repaired, unit)

	mark := p.mark()
	p.patiently(func() bool {
		before := mark
		mark = p.mark()
		<-time.After(2 * time.Second)
		sent, _ := p.since(before)
		return sent == 0
	}, "the agent does not come to rest")
	mark = p.mark()
	<-time.After(idle())
	sent, by := p.since(mark)
	t.Logf("at rest: %v", by)
	p.budgets.Count("requestsAtRest", float64(sent))
	p.budgets.Memory("thousandWorks", p.memory())

	mark = p.mark()
	p.stop()
	p.start()
	<-time.After(idle())
	sent, by = p.since(mark)
	t.Logf("restarted: %v", by)
	p.budgets.Count("requestsToStartAnew", float64(sent))
	p.budgets.Memory("startedAnew", p.memory())
	if !testing.Short() {
		p.foreign()
	}
	p.budgets.Complete()
}

// idle is how long an agent rests before its memory is read.
func idle() time.Duration { return budget.Sized(time.Minute, 20*time.Second) }

// foreign measures the memory of an agent whose works hold Secrets and Pods, among many
// of other owners.
func (p *program) foreign() {
	other := newProgram(p.t, p.budgets)
	other.each(foreigners, func(i int) error {
		kind, gvr, rest := "Secret", secrets, `"data":{"k":"dg=="}`
		if i%2 == 1 {
			kind, gvr, rest = "Pod", pods, `"spec":{"containers":[{"name":"c","image":"none"}]}`
		}
		return other.make(other.spoke, gvr, fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":"foreign-%d","namespace":"default"},%s}`, kind, i, rest))
	})
	for i := range 10 {
		name := fmt.Sprintf("own-%d", i)
		require.NoError(other.t, other.make(other.hub, works, fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1",
			"kind":"ManifestWork","metadata":{"name":%[1]q,"namespace":"c1"},
			"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":%[1]q,"namespace":"default"},"data":{"k":"dg=="}},
			{"apiVersion":"v1","kind":"Pod","metadata":{"name":%[1]q,"namespace":"default"},"spec":{"containers":[{"name":"c","image":"none"}]}}]}}}`, name)))
	}
	other.patiently(func() bool { return other.done("own-") == 10 }, "works are not applied")
	<-time.After(idle())
	other.budgets.Memory("foreignObjects", other.memory())
}

// load creates works of ten manifests each.
func (p *program) load(prefix string, n int) {
	p.each(n, func(i int) error {
		var list []string
		for m := range manifests {
			kind := "ConfigMap"
			if m == 0 {
				kind = "Secret"
			}
			list = append(
				list,
				fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":"%s-%d-%d","namespace":"default"},"data":{"key":"dmFsdWU="}}`, kind, prefix, i, m),
			)
		}
		return p.make(p.hub, works, fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork",
			"metadata":{"name":"%s-%d","namespace":"c1"},
			"spec":{"workload":{"manifests":[%s]}}}`, prefix, i, strings.Join(list, ",")))
	})
}

func (p *program) memory() memory.Usage { return budget.MemoryOf(p.t, p.cmd.Process.Pid) }

// patiently waits for done, which takes minutes on a busy machine.
func (p *program) patiently(done func() bool, message string) {
	p.t.Helper()
	require.Eventually(p.t, done, 10*time.Minute, time.Second, message)
}

// done counts the applied works whose names have the prefix.
func (p *program) done(prefix string) int {
	list, err := typed.List[workv1.ManifestWork](p.t.Context(), p.hub, works, cluster, metav1.ListOptions{})
	require.NoError(p.t, err)
	n := 0
	for i := range list {
		if strings.HasPrefix(list[i].Name, prefix) && apimeta.IsStatusConditionTrue(list[i].Status.Conditions, workv1.ConditionApplied) {
			n++
		}
	}
	return n
}
