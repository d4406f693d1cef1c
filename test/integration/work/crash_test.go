// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// crash is one run of a story: the agent dies after its nth write, something
// changes while it is away, and a new agent has to finish.
type crash struct {
	*scene
	name string
}

func (c *crash) object(suffix string) string { return c.name + "-" + suffix }

// set makes the work declare the objects with a value each: "a=1".
func (c *crash) set(objects ...string) []string {
	var out []string
	for _, o := range objects {
		suffix, value, _ := strings.Cut(o, "=")
		out = append(out, configMap(c.object(suffix), "v", value))
	}
	return out
}

// converged checks the end of a run: exactly the wanted objects are there, each
// recorded once with its identity, and nothing else of the work.
func (c *crash) converged(want ...string) {
	c.t.Helper()
	c.eventually(func() bool { return c.difference(want) == "" }, "the run did not converge")
	if len(want) > 0 {
		c.ready(c.name)
	} else {
		c.gone(c.name)
	}
	require.Empty(c.t, c.difference(want))
}

// difference says how the cluster differs from what is wanted.
func (c *crash) difference(want []string) string {
	var have []string
	identities := map[string]string{}
	for _, o := range c.list(c.spoke, configMaps, c.namespace) {
		if suffix, ours := strings.CutPrefix(o.GetName(), c.name+"-"); ours {
			have = append(have, suffix+"="+c.data(o.GetName(), "v"))
			identities[o.GetName()] = string(o.GetUID())
		}
	}
	slices.Sort(have)
	if !slices.Equal(have, want) {
		return fmt.Sprintf("objects are %v, want %v", have, want)
	}
	applied := c.applied(c.name)
	if applied == nil {
		if len(want) > 0 {
			return "there is no AppliedManifestWork"
		}
		return ""
	}
	if len(applied.Status.AppliedResources) != len(want) {
		return fmt.Sprintf("recorded are %v", applied.Status.AppliedResources)
	}
	for _, r := range applied.Status.AppliedResources {
		if identities[r.Name] != string(r.UID) {
			return fmt.Sprintf("%s is recorded as %s and is %s", r.Name, r.UID, identities[r.Name])
		}
	}
	return ""
}

func TestACrashAfterAnyWriteLeavesNoOrphanAndNoDoubleEffect(t *testing.T) {
	type story struct {
		// before brings the work to the state in which the story begins.
		before []string
		// during is what happens while the mortal agent runs.
		during func(*crash)
	}
	start := []string{"a=1", "b=1"}
	stories := map[string]story{
		"create": {nil, func(c *crash) { c.create(c.name, c.set(start...)) }},
		"update": {start, func(c *crash) { c.update(c.name, c.manifests(c.set("a=2", "c=1")...)) }},
		"delete": {start, func(c *crash) { c.remove(c.name) }},
		"repair": {start, func(c *crash) {
			require.NoError(c.t, c.spoke.Resource(configMaps).Namespace(c.namespace).Delete(context.Background(), c.object("b"), metav1.DeleteOptions{}))
		}},
	}
	afterwards := map[string]struct {
		change func(*crash)
		want   []string
	}{
		"nothing": {func(*crash) {}, nil},
		"less":    {func(c *crash) { c.update(c.name, c.manifests(c.set("a=3")...)) }, []string{"a=3"}},
		"deleted": {func(c *crash) { c.remove(c.name) }, []string{}},
		"recreated": {func(c *crash) {
			stop := c.start()
			c.remove(c.name)
			c.gone(c.name)
			stop()
			c.create(c.name, c.set("b=4"))
		}, []string{"b=4"}},
	}
	wants := map[string][]string{"create": start, "update": {"a=2", "c=1"}, "delete": {}, "repair": start}

	s := newScene(t)
	s.config.Log = logr.Discard()
	for story, st := range stories {
		for after, af := range afterwards {
			if story == "delete" && after != "nothing" {
				continue
			}
			want := af.want
			if after == "nothing" {
				want = wants[story]
			}
			for n := 1; ; n++ {
				c := &crash{scene: s, name: fmt.Sprintf("%s-%s-%d", story, after, n)}
				died := c.mortalRun(st.before, st.during, n)
				af.change(c)
				stop := c.start()
				c.converged(want...)
				c.end()
				stop()
				if !died {
					require.Greater(t, n, 2, "the story %s has too few writes to be one", story)
					t.Logf("story %s, then %s: %d writes", story, after, n-1)
					break
				}
			}
		}
	}
}

// end removes the work, so that the next run counts no writes of this one.
func (c *crash) end() {
	for _, w := range c.list(c.hub, works, c.cluster) {
		c.remove(w.GetName())
		c.gone(w.GetName())
	}
}

// mortalRun lets an agent live the story until its nth write; false means that
// the story ended before.
func (c *crash) mortalRun(before []string, during func(*crash), n int) bool {
	var stop func()
	if before != nil {
		stop = c.start()
		c.create(c.name, c.set(before...))
		c.converged(before...)
	}
	crashed := c.sent.dieAfter(n)
	if stop == nil {
		stop = c.start()
	}
	during(c)
	defer c.sent.revive()
	defer stop()
	return c.atRestOr(crashed)
}

// atRestOr waits until the agent died, or has sent nothing for a while.
func (c *crash) atRestOr(crashed <-chan struct{}) bool {
	const quiet = 700 * time.Millisecond
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	last := time.Now()
	for time.Since(last) < quiet {
		select {
		case <-crashed:
			return true
		case <-ticker.C:
			if len(c.sent.take()) > 0 {
				last = time.Now()
			}
		}
	}
	return false
}
