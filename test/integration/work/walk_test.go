// SPDX-License-Identifier: Apache-2.0

package work

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// walksOfARun is the number of random walks unless -rapid.checks says otherwise: each takes
// thirty steps or more.
const walksOfARun = "5"

// seedOfARun starts the walks unless -rapid.seed says otherwise, so that every run of the suite
// takes the same ones. "make faults" takes others.
const seedOfARun = "20"

// badWeather disturbs half of the walks. It is not part of every run: refused requests may take
// longer than the grace of the walks, after which a switched hub's old record is evicted with
// objects that the new one has not taken over yet, and longer than a step may take.
var badWeather = flag.Bool("bad-weather", false, "disturb the traffic of half of the random walks")

// converges is how long a step of a walk may take on a busy machine.
const converges = 2 * time.Minute

// model is what must exist after the steps so far.
type model struct {
	// works are the declared works, objects what is on the cluster.
	works   map[string]*declared
	objects map[string]*thing
	// last is the last value that was given to an object.
	last int
}

// declared is a work: the names of its objects, and whether it leaves them behind.
type declared struct {
	objects []string
	orphan  bool
}

// thing is an object: its value, and the works that it goes with.
type thing struct {
	value string
	of    map[string]bool
}

// declaredBy returns the works that declare an object.
func (m *model) declaredBy(object string) (out []string) {
	for name, w := range m.works {
		if slices.Contains(w.objects, object) {
			out = append(out, name)
		}
	}
	return out
}

// next returns the value with which a work declares an object: that of the other work which
// declares it too, so that two works never contradict each other, or a new one.
func (m *model) next(work, object string) string {
	for _, other := range m.declaredBy(object) {
		if other != work {
			return m.objects[object].value
		}
	}
	m.last++
	return strconv.Itoa(m.last)
}

// declare gives a work these objects.
func (m *model) declare(work string, values map[string]string, orphan bool) {
	before := m.works[work]
	m.works[work] = &declared{slices.Sorted(maps.Keys(values)), orphan}
	for object, value := range values {
		if m.objects[object] == nil {
			m.objects[object] = &thing{of: map[string]bool{}}
		}
		m.objects[object].value = value
		if delete(m.objects[object].of, work); !orphan {
			m.objects[object].of[work] = true
		}
	}
	if before != nil {
		for _, object := range before.objects {
			if _, stays := values[object]; !stays {
				m.release(work, object)
			}
		}
	}
}

// release ends what binds an object to a work. The object goes with the last of its works.
func (m *model) release(work, object string) {
	o := m.objects[object]
	if o == nil || !o.of[work] {
		return
	}
	if delete(o.of, work); len(o.of) == 0 && len(m.declaredBy(object)) == 0 {
		delete(m.objects, object)
	}
}

// forgo removes a work.
func (m *model) forgo(work string) {
	w := m.works[work]
	delete(m.works, work)
	for _, object := range w.objects {
		m.release(work, object)
	}
}

// expects is the picture that a run has to become; see crash.picture.
func (m *model) expects() []string {
	var out []string
	for name, o := range m.objects {
		of := strings.Join(slices.Sorted(maps.Keys(o.of)), "+")
		if of == "" {
			of = "nobody"
		}
		out = append(out, name+"="+o.value+" of "+of)
	}
	for name, w := range m.works {
		out = append(out, "record "+name+": "+strings.Join(w.objects, " "), "work "+name+" is ready")
	}
	slices.Sort(out)
	return out
}

// drawn is the test of one walk: what fails ends the walk and not the test, which then looks
// for a shorter one.
type drawn struct {
	testing.TB
	walk *rapid.T
}

func (d drawn) Errorf(format string, args ...any) { d.walk.Errorf(format, args...) }
func (d drawn) Fatalf(format string, args ...any) { d.walk.Fatalf(format, args...) }
func (d drawn) FailNow()                          { d.walk.FailNow() }
func (d drawn) Helper()                           {}

// walk is one random walk: what is done to the hub and to the agent, beside the model.
type walk struct {
	*crash
	model
	stop func()
	// edited is set while an object differs from what its work last reported.
	edited bool
}

// values draws the objects of a work and their values.
func (w *walk) values(t *rapid.T, work string) map[string]string {
	out := map[string]string{}
	for _, object := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID[string]).Draw(t, "objects") {
		out[object] = w.next(work, object)
	}
	return out
}

// send brings a work of the model to the hub.
func (w *walk) send(work string, created bool) {
	var objects []string
	for _, object := range w.works[work].objects {
		objects = append(objects, object+"="+w.objects[object].value)
	}
	keep := func(m *workv1.ManifestWork) {
		if m.Spec.DeleteOption = nil; w.works[work].orphan {
			orphan()(m)
		}
	}
	if created {
		w.crash.declare(work, objects, keep)
		return
	}
	w.redeclare(work, objects, keep)
}

// one draws one of the works that exist, or that do not.
func (w *walk) one(t *rapid.T, exists bool) string {
	names := slices.DeleteFunc([]string{"v", "w"}, func(name string) bool { return (w.works[name] != nil) != exists })
	if len(names) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(names).Draw(t, "work")
}

// step does something while the agent runs, which may die after one of its next writes.
func (w *walk) step(t *rapid.T, do func()) {
	dies := rapid.IntRange(0, 6).Draw(t, "dies after")
	if dies > 0 {
		w.sent.DieAfter(dies)
	}
	do()
	if dies > 0 {
		w.converge(true)
		w.stop()
		w.sent.Revive()
		w.stop = w.start()
	}
	w.converge(false)
}

// away does something while no agent runs.
func (w *walk) away(do func()) {
	w.stop()
	do()
	w.stop = w.start()
	w.converge(false)
}

// steps are what can happen in a walk.
func (w *walk) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"declare": func(t *rapid.T) {
			work := w.one(t, false)
			values, orphan := w.values(t, work), rapid.Bool().Draw(t, "orphan")
			w.model.declare(work, values, orphan)
			w.step(t, func() { w.send(work, true) })
		},
		"change": func(t *rapid.T) {
			work := w.one(t, true)
			values, orphan := w.values(t, work), w.works[work].orphan
			w.model.declare(work, values, orphan)
			w.step(t, func() { w.send(work, false) })
		},
		"orphan": func(t *rapid.T) {
			work := w.one(t, true)
			values := map[string]string{}
			for _, object := range w.works[work].objects {
				values[object] = w.objects[object].value
			}
			w.model.declare(work, values, !w.works[work].orphan)
			w.step(t, func() { w.send(work, false) })
		},
		"delete": func(t *rapid.T) {
			work := w.one(t, true)
			w.forgo(work)
			w.step(t, func() { w.remove(w.full(work)) })
		},
		"evict": func(t *rapid.T) {
			work := w.one(t, true)
			w.forgo(work)
			w.away(func() { w.forget(w.full(work)) })
		},
		"lose an object": func(t *rapid.T) {
			object := w.object(t)
			if delete(w.born, w.full(object)); len(w.declaredBy(object)) == 0 {
				delete(w.objects, object)
			}
			w.edited = true
			w.step(t, func() { w.crash.drop(object) })
		},
		"edit an object": func(t *rapid.T) {
			object := w.object(t)
			if len(w.declaredBy(object)) == 0 {
				w.objects[object].value = "edited"
			}
			w.edited = true
			w.step(t, func() { w.patch(configMaps, w.full(object), `{"data":{"v":"edited"}}`) })
		},
		"switch the hub": func(*rapid.T) { w.away(w.moved) },
	}
}

// object draws an object that exists.
func (w *walk) object(t *rapid.T) string {
	names := slices.Sorted(maps.Keys(w.objects))
	if len(names) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(names).Draw(t, "object")
}

// converge waits until the clusters are as the model says, or the agent is dead if it may be.
// On the way, no object is made anew that was there, and no work says that it is ready before
// its objects are.
func (w *walk) converge(mortal bool) {
	var have []string
	want := w.expects()
	ok := harness.Until(converges, func() bool {
		ready := w.ready()
		have = w.crash.picture()
		for _, line := range have {
			require.NotContains(w.t, line, "recreated", "what is declared was removed: %v", have)
		}
		w.honest(ready, have)
		return slices.Equal(want, have) || mortal && w.sent.Dead()
	})
	require.True(w.t, ok, "the clusters do not become as declared (-want +have):\n%s", differs{want, &have})
	if mortal {
		return
	}
	w.edited = false
	w.born = map[string]types.UID{}
	for _, o := range w.list(w.spoke, configMaps, w.namespace) {
		w.born[o.GetName()] = o.GetUID()
	}
}

// ready returns the works that say they are applied and available.
func (w *walk) ready() (out []string) {
	for name := range w.works {
		if stateOf(w.work(w.full(name))) == " is ready" {
			out = append(out, name)
		}
	}
	return out
}

// honest requires the objects of works that said before that they are ready.
func (w *walk) honest(ready, have []string) {
	if w.edited {
		return
	}
	for _, name := range ready {
		for _, object := range w.works[name].objects {
			require.True(w.t, slices.ContainsFunc(have, func(line string) bool {
				return strings.HasPrefix(line, object+"="+w.objects[object].value+" of ")
			}), "work %s says it is ready without %s=%s: %v", name, object, w.objects[object].value, have)
		}
	}
}

// rests waits until the agent sends nothing anymore.
func (w *walk) rests() {
	const enough = 500 * millisecond
	var quiet time.Duration
	w.sent.Take()
	w.steadily(func() bool {
		if quiet += pollEvery; len(writes(w.sent.Take(), "hub")) > 0 || w.sent.Busy() {
			quiet = 0
		}
		return quiet > enough
	}, "the agent does not come to rest")
}

// setOut sets how many walks are taken, and from which seed, unless the command line says so.
var setOut = sync.OnceValue(func() error {
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue {
		return nil
	}
	return errors.Join(checks.Value.Set(walksOfARun), flag.Set("rapid.seed", seedOfARun))
})

// TestRandomWalksOfAWorkEndAsDeclared takes random walks through the lives of two works that may
// share objects. A failure prints the walk, as short as it was found, and the seed that repeats
// it; its file under testdata/rapid is taken again by every later run.
func TestRandomWalksOfAWorkEndAsDeclared(t *testing.T) {
	takeWalks(t, (*walk).steps)
}

// takeWalks takes random walks of these steps.
func takeWalks(t *testing.T, stepsOf func(*walk) map[string]func(*rapid.T)) {
	t.Helper()
	require.NoError(t, setOut())
	t.Parallel()
	s := newScene(t)
	s.config.Log, s.config.Grace = logr.Discard(), 300*millisecond
	access := s.settledAccess()
	var walks, steps atomic.Int64
	disturbed := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		w := &walk{crash: &crash{scene: s.in(drawn{t, rt}), name: fmt.Sprintf("walk-%d", walks.Add(1))},
			model: model{works: map[string]*declared{}, objects: map[string]*thing{}}}
		weather := faults.NewWeather(rapid.Uint64().Draw(rt, "weather"))
		if *badWeather && rapid.Bool().Draw(rt, "bad weather") {
			weather.Over(w.sent)
		}
		before := steps.Load()
		w.sent.Take()
		w.stop = w.start()
		defer func() {
			w.stop()
			w.sent.Fair()
			w.sent.Revive()
			for _, o := range w.list(w.spoke, configMaps, w.namespace) {
				drop(t, w.spoke, configMaps, &o)
			}
			s.clean()
		}()
		actions := stepsOf(w)
		actions[""] = func(*rapid.T) { steps.Add(1) }
		rt.Repeat(actions)
		w.sent.Fair()
		requests := len(w.sent.Take())
		w.rests()
		w.bounded(w.t, access, requests, steps.Load()-before)
		for what, n := range weather.Done() {
			disturbed[what] += n
		}
	})
	t.Logf("%d walks, %d steps, disturbed by %v", walks.Load(), steps.Load(), disturbed)
}
