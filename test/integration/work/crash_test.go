// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// crash is one run of a story: the agent dies after its nth write, and a new agent has to
// finish. The names of works and objects have the run's name as a prefix.
type crash struct {
	*scene
	name string
	// born holds the UIDs of the objects when the story began.
	born map[string]types.UID
}

func (c *crash) full(suffix string) string { return c.name + "-" + suffix }

// manifestsOf returns manifests of objects with a value each: "a=1".
func (c *crash) manifestsOf(objects ...string) []string {
	var out []string
	for _, o := range objects {
		suffix, value, _ := strings.Cut(o, "=")
		out = append(out, configMap(c.full(suffix), "v", value))
	}
	return out
}

// declare creates a work of such objects, redeclare gives it others.
func (c *crash) declare(work string, objects []string, changes ...change) {
	c.create(c.full(work), c.manifestsOf(objects...), changes...)
}

func (c *crash) redeclare(work string, objects []string, changes ...change) {
	c.update(c.full(work), append([]change{c.manifests(c.manifestsOf(objects...)...)}, changes...)...)
}

// foreign creates an object of another owner on the cluster.
func (c *crash) foreign(object string) {
	apply(c.t, c.spoke, configMaps, c.namespace, strings.ReplaceAll(c.manifestsOf(object)[0], "NS", c.namespace))
}

// by gives all objects of a work this update strategy and no other.
func (c *crash) by(u workv1.UpdateStrategy) change {
	return func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = nil
		strategy(c.full("*"), u)(w)
	}
}

// spared returns the delete option that leaves one object behind.
func (c *crash) spared(suffix string) change {
	return orphan(workv1.OrphaningRule{Resource: "configmaps", Namespace: c.namespace, Name: c.full(suffix)})
}

// picture returns all that exists of the run: each object with its value and the works
// that own it, each AppliedManifestWork, and each work. Objects that existed before and
// now have another UID are marked, and so are UIDs that are recorded wrongly.
func (c *crash) picture() []string {
	var out []string
	of := map[types.UID]string{}
	live := map[string]types.UID{}
	records := c.records()
	for _, r := range records {
		suffix := strings.TrimPrefix(r.Spec.ManifestWorkName, c.name+"-")
		if r.Spec.HubHash != c.config.HubHash {
			suffix += "@old"
		}
		of[r.UID] = suffix
	}
	for _, o := range c.list(c.spoke, configMaps, c.namespace) {
		suffix, ours := strings.CutPrefix(o.GetName(), c.name+"-")
		if !ours {
			continue
		}
		live[o.GetName()] = o.GetUID()
		value, _, _ := unstructured.NestedString(o.Object, "data", "v")
		line := suffix + "=" + value + " of " + owners(o.GetOwnerReferences(), of)
		if born, ok := c.born[o.GetName()]; ok && born != o.GetUID() {
			line += ", recreated"
		}
		out = append(out, line)
	}
	for _, r := range records {
		line := "record " + of[r.UID] + ":"
		for _, have := range r.Status.AppliedResources {
			line += " " + strings.TrimPrefix(have.Name, c.name+"-")
			if live[have.Name] != have.UID {
				line += "(wrong)"
			}
		}
		out = append(out, line)
	}
	for _, w := range c.list(c.hub, works, c.cluster) {
		if suffix, ours := strings.CutPrefix(w.GetName(), c.name+"-"); ours {
			work, err := typed.FromUnstructured[workv1.ManifestWork](&w)
			require.NoError(c.t, err)
			out = append(out, "work "+suffix+stateOf(work))
		}
	}
	slices.Sort(out)
	return out
}

// records returns the AppliedManifestWorks of the run, for every address of the hub.
func (c *crash) records() []*workv1.AppliedManifestWork {
	var out []*workv1.AppliedManifestWork
	for _, u := range c.list(c.spoke, applieds, "") {
		r, err := typed.FromUnstructured[workv1.AppliedManifestWork](&u)
		require.NoError(c.t, err)
		if r.Spec.AgentID == c.config.AgentID && strings.HasPrefix(r.Spec.ManifestWorkName, c.name+"-") {
			out = append(out, r)
		}
	}
	return out
}

// owners returns the works that an object is deleted with.
func owners(references []metav1.OwnerReference, of map[types.UID]string) string {
	var out []string
	for _, r := range references {
		name := of[r.UID]
		if name == "" {
			name = "a work that is gone"
		}
		out = append(out, name)
	}
	if len(out) == 0 {
		return "nobody"
	}
	slices.Sort(out)
	return strings.Join(out, "+")
}

// stateOf returns the state of a work.
func stateOf(w *workv1.ManifestWork) string {
	for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
		c := apimeta.FindStatusCondition(w.Status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != w.Generation || w.DeletionTimestamp != nil {
			return " is not ready"
		}
	}
	return " is ready"
}

// becomes waits until the picture of the run is want.
func (c *crash) becomes(want []string) {
	c.t.Helper()
	var have []string
	c.eventually(func() bool { have = c.picture(); return slices.Equal(want, have) },
		"the run %s did not converge (-want +have):\n%s", c.name, differs{want, &have})
}

// differs computes a difference only when it is printed.
type differs struct {
	want []string
	have *[]string
}

// String returns the difference.
func (d differs) String() string { return cmp.Diff(d.want, *d.have) }

// end removes everything of the run, so that the next one counts no writes of this one.
func (c *crash) end() {
	c.t.Helper()
	for _, w := range c.list(c.hub, works, c.cluster) {
		if strings.HasPrefix(w.GetName(), c.name+"-") {
			if w.GetDeletionTimestamp() == nil {
				c.remove(w.GetName())
			}
			c.gone(w.GetName())
		}
	}
	for _, o := range c.list(c.spoke, configMaps, c.namespace) {
		if strings.HasPrefix(o.GetName(), c.name+"-") {
			drop(c.t, c.spoke, configMaps, &o)
		}
	}
	c.eventually(func() bool { return len(c.records()) == 0 }, "a record of run %s is left", c.name)
}

// mortalRun runs a story until the agent's nth write; false means that the story ended
// before that.
func (c *crash) mortalRun(st story, n int) (died bool) {
	c.t.Helper()
	var stop func()
	if st.before != nil {
		stop = c.start()
		st.before(c)
		c.becomes(st.start)
	}
	c.born = map[string]types.UID{}
	for _, o := range c.list(c.spoke, configMaps, c.namespace) {
		c.born[o.GetName()] = o.GetUID()
	}
	if st.before != nil && st.away {
		stop()
		stop = nil
	}
	if stop == nil && st.away {
		st.during(c)
	}
	c.sent.DieAfter(n)
	if stop == nil {
		stop = c.start()
	}
	if !st.away {
		st.during(c)
	}
	c.livesOn(st.end())
	stop()
	died = c.sent.Dead()
	c.sent.Revive()
	return died
}

// livesOn waits until the agent dies, or the picture is want and the agent rests.
func (c *crash) livesOn(want []string) {
	c.t.Helper()
	const enough, again = 700 * millisecond, 100 * millisecond
	var quiet time.Duration
	c.steadily(func() bool {
		if quiet += pollEvery; len(c.sent.Take()) > 0 || c.sent.Busy() {
			quiet = 0
		}
		if c.sent.Dead() || quiet <= enough {
			return c.sent.Dead()
		}
		quiet = enough - again
		return slices.Equal(want, c.picture())
	}, "the run %s has no end: %s", c.name, pictured{c})
}

// pictured computes the picture of a run only when it is printed.
type pictured struct{ *crash }

// String returns the picture.
func (p pictured) String() string { return strings.Join(p.picture(), "; ") }

// runStory runs a story with a death after each of its writes, and then to its end.
func runStory(t *testing.T, name string, st story) {
	s := newScene(t)
	s.config.Log, s.config.Grace = logr.Discard(), st.grace
	for n := 1; ; n++ {
		c := &crash{scene: s, name: fmt.Sprintf("run-%d", n)}
		died := c.mortalRun(st, n)
		if st.after != nil {
			st.after(c)
		}
		stop := c.start()
		c.becomes(st.want)
		c.end()
		stop()
		if !died {
			require.Greater(t, n, st.atLeast, "the story has too few writes to be one")
			t.Logf("%s: %d writes", name, n-1)
			return
		}
	}
}
