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

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// story is a sequence of changes to works. It is run once for each write of the agent,
// which dies after that write.
type story struct {
	// before creates the initial state of the story, start is its picture.
	before func(*crash)
	start  []string
	// during makes the changes; away is set when it runs while no agent does.
	during func(*crash)
	away   bool
	// after makes changes between the death and the next life; nil for none.
	after func(*crash)
	// want is the picture at the end; see crash.picture. With after, between is the
	// picture before it.
	want, between []string
	// atLeast is the minimum number of writes in the story.
	atLeast int
	// grace is the agent's grace period, zero for its default.
	grace time.Duration
}

// end returns the picture at the end of during.
func (st story) end() []string {
	if st.after != nil {
		return st.between
	}
	return st.want
}

// two is the initial state of most stories: a work of two objects.
func two(changes ...change) func(*crash) {
	return func(c *crash) { c.declare("w", []string{"a=1", "b=1"}, changes...) }
}

var twoReady = []string{"a=1 of w", "b=1 of w", "record w: a b", "work w is ready"}

// shared is the initial state of stories with two works that declare the same object.
func shared(c *crash) {
	c.declare("v", []string{"a=1"})
	c.eventually(func() bool { return strings.Contains(strings.Join(c.picture(), " "), "work v is ready") }, "the first work is not ready")
	c.declare("w", []string{"a=1", "b=1"})
}

var sharedReady = []string{"a=1 of v+w", "b=1 of w", "record v: a", "record w: a b", "work v is ready", "work w is ready"}

func (c *crash) drop(suffix string) {
	require.NoError(c.t, c.spoke.Resource(configMaps).Namespace(c.namespace).Delete(context.Background(), c.full(suffix), metav1.DeleteOptions{}))
}

// moved gives the agent another address of the hub.
func (c *crash) moved() {
	half := len(c.config.HubHash) / 2
	c.config.HubHash = c.config.HubHash[half:] + c.config.HubHash[:half]
}

func TestACrashAfterAnyWriteLeavesNoOrphanAndNoDoubleEffect(t *testing.T) {
	serverSideForced := serverSide("work-agent-other", true)
	once := workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}
	look := workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}
	orphans := []string{"a=1 of nobody", "b=1 of nobody", "record w: a b", "work w is ready"}
	remove := func(c *crash) { c.remove(c.full("w")) }
	for name, st := range map[string]story{
		"a work is created": {during: two(), want: twoReady, atLeast: 6},
		"an update changes, adds and prunes": {before: two(), start: twoReady, atLeast: 5,
			during: func(c *crash) { c.redeclare("w", []string{"a=2", "c=1"}) },
			want:   []string{"a=2 of w", "c=1 of w", "record w: a c", "work w is ready"}},
		"a deleted object is repaired": {before: two(), start: twoReady, atLeast: 2,
			during: func(c *crash) { c.drop("b") },
			want:   []string{"a=1 of w", "b=1 of w, recreated", "record w: a b", "work w is ready"}},
		"a work is deleted": {before: two(), start: twoReady, during: remove, atLeast: 5},

		"Update becomes ServerSideApply": {before: two(), start: twoReady, atLeast: 3,
			during: func(c *crash) { c.redeclare("w", []string{"a=2", "b=1"}, c.by(serverSideForced)) },
			want:   []string{"a=2 of w", "b=1 of w", "record w: a b", "work w is ready"}},
		"Update becomes CreateOnly": {before: two(), start: twoReady, atLeast: 1,
			during: func(c *crash) { c.redeclare("w", []string{"a=2", "b=1"}, c.by(once)) }, want: twoReady},
		"Update becomes ReadOnly": {before: two(), start: twoReady, atLeast: 1,
			during: func(c *crash) { c.redeclare("w", []string{"a=2", "b=1"}, c.by(look)) }, want: twoReady},
		"ServerSideApply is created": {atLeast: 6, want: twoReady,
			during: func(c *crash) { c.declare("w", []string{"a=1", "b=1"}, c.by(serverSideForced)) }},
		"ReadOnly looks at what others made": {
			before:  func(c *crash) { c.foreign("a=0") },
			start:   []string{"a=0 of nobody"},
			atLeast: 4,
			during:  func(c *crash) { c.declare("w", []string{"a=1"}, c.by(look)) },
			want:    []string{"a=0 of nobody", "record w: a", "work w is ready"},
		},
		"a ReadOnly work is deleted": {
			atLeast: 2,
			before:  func(c *crash) { c.foreign("a=0"); c.declare("w", []string{"a=1"}, c.by(look)) },
			start:   []string{"a=0 of nobody", "record w: a", "work w is ready"},
			during:  remove,
			want:    []string{"a=0 of nobody"},
		},
		"CreateOnly adopts what others made": {
			before:  func(c *crash) { c.foreign("a=0") },
			start:   []string{"a=0 of nobody"},
			atLeast: 6,
			during:  func(c *crash) { c.declare("w", []string{"a=1", "b=1"}, c.by(once)) },
			want:    []string{"a=0 of w", "b=1 of w", "record w: a b", "work w is ready"},
		},

		"the delete option becomes Orphan": {before: two(), start: twoReady, atLeast: 3,
			during: func(c *crash) { c.update(c.full("w"), orphan()) }, want: orphans},
		"the delete option is Orphan no more": {
			before:  two(orphan()),
			start:   orphans,
			atLeast: 3,
			during:  func(c *crash) { c.update(c.full("w"), func(w *workv1.ManifestWork) { w.Spec.DeleteOption = nil }) },
			want:    twoReady,
		},
		"an orphaning work is deleted": {before: two(orphan()), start: orphans, during: remove, atLeast: 2,
			want: []string{"a=1 of nobody", "b=1 of nobody"}},
		"a work that orphans one object is deleted": {
			atLeast: 3,
			before:  func(c *crash) { two(c.spared("a"))(c) },
			start:   []string{"a=1 of nobody", "b=1 of w", "record w: a b", "work w is ready"},
			during:  remove,
			want:    []string{"a=1 of nobody"},
		},
		"a work becomes orphaning and is deleted at once": {
			before:  two(),
			start:   twoReady,
			away:    true,
			atLeast: 3,
			during:  func(c *crash) { c.update(c.full("w"), orphan()); c.remove(c.full("w")) },
			want:    []string{"a=1 of nobody", "b=1 of nobody"},
		},

		"a forgotten work is evicted": {before: two(), start: twoReady, away: true, grace: 300 * time.Millisecond, atLeast: 4,
			during: func(c *crash) { c.forget(c.full("w")) }},
		"a forgotten work comes back": {before: two(), start: twoReady, away: true, atLeast: 1, want: twoReady,
			during: func(c *crash) { c.forget(c.full("w")); two()(c) }},
		"the hub has another address": {before: two(), start: twoReady, away: true, grace: 300 * time.Millisecond, atLeast: 6,
			during: (*crash).moved, want: twoReady},

		"a second work declares the same object": {
			atLeast: 5,
			want:    sharedReady,
			before:  func(c *crash) { c.declare("v", []string{"a=1"}) },
			start:   []string{"a=1 of v", "record v: a", "work v is ready"},
			during:  func(c *crash) { c.declare("w", []string{"a=1", "b=1"}) },
		},
		"one of two works that share an object is deleted": {before: shared, start: sharedReady, during: remove, atLeast: 4,
			want: []string{"a=1 of v", "record v: a", "work v is ready"}},
		"one of two works leaves the shared object": {before: shared, start: sharedReady, atLeast: 3,
			during: func(c *crash) { c.redeclare("w", []string{"b=1"}) },
			want:   []string{"a=1 of v", "b=1 of w", "record v: a", "record w: b", "work v is ready", "work w is ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runStory(t, name, st)
		})
	}
}

func TestAChangeBetweenTwoLivesIsCarriedOut(t *testing.T) {
	stories := map[string]story{
		"a work is created": {during: two(), between: twoReady, atLeast: 6},
		"an update changes, adds and prunes": {before: two(), start: twoReady, atLeast: 5,
			during:  func(c *crash) { c.redeclare("w", []string{"a=2", "c=1"}) },
			between: []string{"a=2 of w", "c=1 of w", "record w: a c", "work w is ready"}},
		"a deleted object is repaired": {before: two(), start: twoReady, atLeast: 2, during: func(c *crash) { c.drop("b") },
			between: []string{"a=1 of w", "b=1 of w, recreated", "record w: a b", "work w is ready"}},
	}
	for name, st := range stories {
		for what, after := range map[string]story{
			"then it declares less": {
				after: func(c *crash) { c.redeclare("w", []string{"a=3"}) },
				want:  []string{"a=3 of w", "record w: a", "work w is ready"}},
			"then it is deleted": {after: func(c *crash) { c.remove(c.full("w")) }},
			"then it is deleted and created again": {
				after: func(c *crash) {
					stop := c.start()
					c.remove(c.full("w"))
					c.gone(c.full("w"))
					stop()
					c.born = nil
					c.declare("w", []string{"b=4"})
				}, want: []string{"b=4 of w", "record w: b", "work w is ready"}},
		} {
			st := st
			st.after, st.want = after.after, after.want
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				runStory(t, name, st)
			})
		}
	}
}

// A work that replaced another one of its name is deleted as soon as it is applied, after
// whichever write the agent died.
func TestASuccessorThatSaysItIsAppliedIsDeletedUnasked(t *testing.T) {
	s := newScene(t)
	s.config.Log = logr.Discard()
	st := story{before: two(), start: twoReady, away: true, want: twoReady, during: func(c *crash) { c.forget(c.full("w")); two()(c) }}
	deleted := 0
	for n, died := 1, true; died; n++ {
		c := &crash{scene: s, name: fmt.Sprintf("run-%d", n)}
		died = c.mortalRun(st, n)
		ready := slices.Contains(c.picture(), "work w is ready")
		if ready {
			c.remove(c.full("w"))
			deleted++
		}
		stop := c.start()
		if !ready {
			c.becomes(st.want)
		}
		c.end()
		stop()
	}
	require.Greater(t, deleted, 1, "no death left a work that says it is applied")
}
