// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
)

func TestAMinuteOfPeaceEndsAFight(t *testing.T) {
	item := Item{Looked: now, Repairs: hotAfter}
	item.recordLook(now.Add(coolAfter - time.Second))
	require.True(t, item.fought(), "it was read in between, and the minute restarts")
	item.recordLook(item.Looked.Add(coolAfter))
	require.False(t, item.fought())
	require.Zero(t, item.Repairs)
}

// still is a watch that shows every object unchanged.
type still struct{ seen apply.Seen }

func (still) Track(string, []drift.Object) {}

func (still) Wait(string, bool) {}

func (s still) Look(schema.GroupVersionResource, string, string) (apply.Seen, drift.Sight) {
	return s.seen, drift.Present
}

func TestAPassComesBackToSayThatAFightIsOver(t *testing.T) {
	c := New(Config{Clock: clocktesting.NewFakePassiveClock(now), Watcher: still{seen("100", "a")}})
	for repairs, want := range map[int]time.Duration{hotAfter: coolAfter - time.Second, hotAfter - 1: 0} {
		item := before(configMap("one"), func(i *Item) { i.Looked, i.Repairs = now.Add(-time.Second), repairs })
		p := &pass{Controller: c, record: &record{owner: "u", items: []Item{*item}}}
		require.Equal(t, want, p.result().RequeueAfter, "%d repairs", repairs)
	}
}
