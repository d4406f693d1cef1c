// SPDX-License-Identifier: Apache-2.0

//go:build perf

package work

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

// probe measures what works cost, with any agent: it sees only both API servers and their
// metrics. Its works hold ConfigMaps in the namespace default.
type probe struct {
	t           testing.TB
	hub, spoke  dynamic.Interface
	cluster     string
	hubConfig   *rest.Config
	spokeConfig *rest.Config
	// pid is the process of the agent, 0 if it is not known.
	pid int
}

// usage is what was used up to a moment: writes of works, their records and ConfigMaps, and
// reads of them, and CPU time.
type usage struct {
	hubWrites, spokeWrites, reads float64
	servers, agent                time.Duration
}

// cost is what one step took.
type cost struct {
	usage
	took time.Duration
}

// add adds another cost.
func (c *cost) add(d cost) {
	c.took += d.took
	c.usage = usage{
		c.hubWrites + d.hubWrites, c.spokeWrites + d.spokeWrites, c.reads + d.reads, c.servers + d.servers, c.agent + d.agent,
	}
}

// writes returns the writes on both sides.
func (c cost) writes() float64 { return c.hubWrites + c.spokeWrites }

// String is one line of the report.
func (c cost) String() string {
	return fmt.Sprintf("%s, %.0f writes on the hub, %.0f on the cluster, %.0f reads; CPU: API servers %s, agent %s",
		c.took.Round(time.Millisecond), c.hubWrites, c.spokeWrites, c.reads, c.servers.Round(10*time.Millisecond), c.agent)
}

// used reads the metrics of both API servers.
func (p *probe) used() usage {
	p.t.Helper()
	var u usage
	for side, config := range []*rest.Config{p.hubConfig, p.spokeConfig} {
		writes, reads, cpu := p.scrape(config)
		u.reads += reads
		u.servers += cpu
		if side == 0 {
			u.hubWrites = writes
		} else {
			u.spokeWrites = writes
		}
	}
	if p.pid != 0 {
		u.agent = budget.CPUTime(p.t, p.pid)
	}
	return u
}

// scrape sums the requests for the resources of the probe in the metrics of an API server,
// and reads its CPU time.
func (p *probe) scrape(config *rest.Config) (writes, reads float64, cpu time.Duration) {
	p.t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(p.t, err)
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, strings.TrimSuffix(config.Host, "/")+"/metrics", nil)
	require.NoError(p.t, err)
	answer, err := client.Do(request)
	require.NoError(p.t, err)
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "process_cpu_seconds_total":
			cpu = time.Duration(n * float64(time.Second))
		case !strings.HasPrefix(name, "apiserver_request_total{") || !concerns(name):
		case strings.Contains(name, `verb="GET"`):
			reads += n
		case !strings.Contains(name, `verb="LIST"`) && !strings.Contains(name, `verb="WATCH"`):
			writes += n
		}
	}
	require.NoError(p.t, lines.Err())
	return writes, reads, cpu
}

// concerns reports whether a counter of requests is about the probe's resources.
func concerns(name string) bool {
	for _, resource := range []string{"manifestworks", "appliedmanifestworks", "configmaps"} {
		if strings.Contains(name, `,resource="`+resource+`"`) {
			return true
		}
	}
	return false
}

// settle is how long after a burst what follows from it still counts.
const settle = 2 * time.Second

// step runs change for the works prefix-0 to n-1 and waits until done holds for each, nil
// standing for a work that is gone. What follows is counted, too, if rest is set.
func (p *probe) step(prefix string, n int, rest bool, change func(i int) error, done func(*unstructured.Unstructured) bool) cost {
	p.t.Helper()
	before, began := p.used(), time.Now()
	changed := make(chan error, 1)
	go func() { changed <- eachOf(n, change) }()
	for !p.follow(prefix, n, done) {
		require.Less(p.t, time.Since(began), 5*time.Minute, "%s: the works are not done", prefix)
	}
	took := time.Since(began)
	require.NoError(p.t, <-changed)
	if rest {
		<-time.After(settle)
	}
	c := p.since(before, began)
	c.took = took
	return c
}

// follow lists and watches the works until done holds for all of them; false if the API
// server ended the watch before.
func (p *probe) follow(prefix string, n int, done func(*unstructured.Unstructured) bool) bool {
	p.t.Helper()
	api := p.hub.Resource(works).Namespace(p.cluster)
	list, err := api.List(p.t.Context(), metav1.ListOptions{})
	require.NoError(p.t, err)
	live := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		live[list.Items[i].GetName()] = &list.Items[i]
	}
	ready := map[string]bool{}
	for i := range n {
		if name := fmt.Sprintf("%s-%d", prefix, i); done(live[name]) {
			ready[name] = true
		}
	}
	w, err := api.Watch(p.t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(p.t, err)
	defer w.Stop()
	timeout := time.After(time.Minute)
	for len(ready) < n {
		select {
		case e := <-w.ResultChan():
			u, _ := e.Object.(*unstructured.Unstructured)
			if u == nil {
				return false
			}
			name := u.GetName()
			if e.Type == "DELETED" {
				u = nil
			}
			if delete(ready, name); strings.HasPrefix(name, prefix) && done(u) {
				ready[name] = true
			}
		case <-timeout:
			return false
		}
	}
	return true
}

// since returns what was used since a moment.
func (p *probe) since(before usage, began time.Time) cost {
	p.t.Helper()
	took, after := time.Since(began), p.used()
	return cost{took: took, usage: usage{
		after.hubWrites - before.hubWrites, after.spokeWrites - before.spokeWrites, after.reads - before.reads,
		after.servers - before.servers, after.agent - before.agent,
	}}
}

// applied returns a condition of works: Applied is True for that generation.
func appliedAt(generation int64) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool {
		if u == nil {
			return false
		}
		work, err := typed.FromUnstructured[workv1.ManifestWork](u)
		if err != nil || work.Generation < generation {
			return false
		}
		c := apimeta.FindStatusCondition(work.Status.Conditions, workv1.ConditionApplied)
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == work.Generation
	}
}

// manifestsOf returns k manifests of ConfigMaps with a value.
func manifestsOf(name string, k int, value string) string {
	var list []string
	for i := range k {
		list = append(list, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-%d","namespace":"default"},"data":{"a":%q}}`, name, i, value))
	}
	return strings.Join(list, ",")
}

// create creates works of k objects and waits until they are applied.
func (p *probe) create(prefix string, n, k int, rest bool) cost {
	return p.step(prefix, n, rest, func(i int) error {
		name := fmt.Sprintf("%s-%d", prefix, i)
		_, err := post(p.t.Context(), p.hub, works, fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork",
			"metadata":{"name":%q,"namespace":%q},"spec":{"workload":{"manifests":[%s]}}}`, name, p.cluster, manifestsOf(name, k, "1")))
		return err
	}, appliedAt(1))
}

// update changes the works' objects, and waits until that is applied.
func (p *probe) update(prefix string, n, k int) cost {
	return p.step(prefix, n, true, func(i int) error {
		name := fmt.Sprintf("%s-%d", prefix, i)
		_, err := p.hub.Resource(works).Namespace(p.cluster).Patch(p.t.Context(), name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"workload":{"manifests":[%s]}}}`, manifestsOf(name, k, "2")), metav1.PatchOptions{})
		return err
	}, appliedAt(2))
}

// remove deletes the works and waits until they are gone.
func (p *probe) remove(prefix string, n int) cost {
	return p.step(prefix, n, true, func(i int) error {
		return p.hub.Resource(works).Namespace(p.cluster).Delete(p.t.Context(), fmt.Sprintf("%s-%d", prefix, i), metav1.DeleteOptions{})
	}, func(u *unstructured.Unstructured) bool { return u == nil })
}

// rawWrites creates and removes ConfigMaps on the cluster, many at once.
func (p *probe) rawWrites(n int) cost {
	p.t.Helper()
	before, began := p.used(), time.Now()
	require.NoError(p.t, eachOf(n, func(i int) error {
		object := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw-%d","namespace":"default"},"data":{"a":"1"}}`, i)
		_, err := post(p.t.Context(), p.spoke, configMaps, object)
		return err
	}))
	require.NoError(p.t, eachOf(n, func(i int) error {
		return p.spoke.Resource(configMaps).Namespace("default").Delete(p.t.Context(), fmt.Sprintf("raw-%d", i), metav1.DeleteOptions{})
	}))
	return p.since(before, began)
}

// measured is the report of a probe.
type measured struct {
	// one is a single work of ten objects up to Applied, raw are writes without any agent:
	// those before each burst.
	one, raw cost
	// created, updated and deleted are bursts of works of one object; works is how many there were.
	works                     int
	created, updated, deleted cost
	// bareCreated, bareUpdated and bareDeleted are the same writes without an agent.
	bareCreated, bareUpdated, bareDeleted cost
	// rest is what both API servers and the probe use without works.
	rest cost
}

// objectsOfOne is the number of objects of the single work.
const objectsOfOne = 10

// measure runs the probe: bursts of n works, several times, because one burst costs the API servers a few
// collections of garbage more or less.
func (p *probe) measure(n, rounds int) measured {
	p.t.Helper()
	id := strconv.FormatInt(time.Now().UnixNano(), 36)
	m := measured{works: n * rounds}
	m.one = p.create("one-"+id, 1, objectsOfOne, false)
	p.t.Logf("one work of %d objects: %s", objectsOfOne, m.one)
	p.remove("one-"+id, 1)
	m.rest = p.step("", 0, true, nil, nil)
	for round := range rounds {
		prefix := fmt.Sprintf("many-%s-%d", id, round)
		for _, s := range []struct {
			into *cost
			run  func() cost
		}{
			{&m.created, func() cost { return p.create(prefix, n, 1, true) }},
			{&m.updated, func() cost { return p.update(prefix, n, 1) }},
			{&m.deleted, func() cost { return p.remove(prefix, n) }},
		} {
			m.raw.add(p.rawWrites(2 * n))
			c := s.run()
			c.servers, c.agent = c.servers-m.rest.servers, c.agent-m.rest.agent
			s.into.add(c)
		}
		p.bare("bare-"+prefix).life(n, &m)
	}
	p.t.Logf("raw writes: %s", m.raw)
	for _, b := range m.bursts() {
		p.t.Logf("%d works %s: %s", m.works, strings.ToLower(b.what), b.ours)
		p.t.Logf("the same writes without an agent: %s", b.bare)
		p.t.Logf("with it they take %.2f times the time and %.2f times the CPU of the API servers", b.took(), b.servers())
	}
	return m
}

// burst is one kind of burst, with the same writes without an agent.
type burst struct {
	what       string
	ours, bare cost
}

func (m measured) bursts() []burst {
	return []burst{{"Created", m.created, m.bareCreated}, {"Updated", m.updated, m.bareUpdated}, {"Deleted", m.deleted, m.bareDeleted}}
}

// took and servers return the time and the CPU time of the API servers as multiples of what
// the bare writes take.
func (b burst) took() float64 { return float64(b.ours.took) / float64(b.bare.took) }

func (b burst) servers() float64 { return float64(b.ours.servers) / float64(b.bare.servers) }

// perWrite returns the time of one write, in seconds.
func (c cost) perWrite() float64 { return c.took.Seconds() / c.writes() }

// check checks the report against the budgets.
func (m measured) check(b *budget.File) {
	n := float64(m.works)
	b.Count("oneHubWrites", m.one.hubWrites)
	b.Count("oneClusterWrites", m.one.spokeWrites-objectsOfOne)
	for _, burst := range m.bursts() {
		b.Count("burst"+burst.what, burst.ours.perWrite()/m.raw.perWrite())
		b.Count("burst"+burst.what+"Bare", burst.took())
		b.Count("burst"+burst.what+"BareCPU", burst.servers())
		b.Count("burst"+burst.what+"Writes", burst.ours.writes()/n)
	}
}

// own returns the probe of the bench's agent, which runs in this process.
func (b *bench) own() *probe {
	return &probe{
		t: b.t, hub: b.hub, spoke: b.spoke, cluster: cluster, hubConfig: b.hubConfig, spokeConfig: b.spokeConfig, pid: os.Getpid(),
	}
}
