// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// forget removes a work from the hub as if it had never existed.
func (s *scene) forget(name string) {
	s.t.Helper()
	for _, w := range s.list(s.hub, works, s.cluster) {
		if w.GetName() == name {
			drop(s.t, s.hub, works, &w)
		}
	}
}

// poke triggers the agent for a work: timers do not follow a clock that is set forward.
func (s *scene) poke(name string) {
	s.t.Helper()
	_, err := s.spoke.Resource(applieds).Patch(context.Background(), s.applied(name).Name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/poke":%q}}}`, s.clock.Now().String()), metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(s.t, err)
}

func TestAWorkThatTheHubForgotIsEvictedAfterTheGrace(t *testing.T) {
	s := newScene(t)
	s.config.Grace = time.Hour
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	stop()
	s.forget("web")
	s.clock.stop()
	s.start()
	s.eventually(func() bool { return s.applied("web").Status.EvictionStartTime != nil }, "not stamped")
	s.clock.forward(59 * time.Minute)
	s.poke("web")
	s.never(func() bool { return s.data("one", "a") != "1" }, second, "something goes before the grace is over")
	s.clock.forward(2 * time.Minute)
	s.poke("web")
	s.eventually(func() bool { return s.applied("web") == nil }, "not evicted")
	require.Equal(t, "-", s.data("one", "a"))
}

func TestAWorkThatComesBackWithinTheGraceIsKept(t *testing.T) {
	s := newScene(t)
	s.config.Grace = time.Hour
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	uid := s.get(configMaps, "one").GetUID()
	stop()
	s.forget("web")
	s.start()
	s.eventually(func() bool { return s.applied("web").Status.EvictionStartTime != nil }, "not stamped")
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	s.eventually(func() bool { return s.applied("web").Status.EvictionStartTime == nil }, "it is still missed")
	require.Equal(t, uid, s.get(configMaps, "one").GetUID())
}

func TestAGraceOfAHundredYearsNeverEvicts(t *testing.T) {
	s := newScene(t)
	s.config.Grace = 100 * 365 * 24 * time.Hour
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	stop()
	s.forget("web")
	s.start()
	s.create("other", []string{configMap("two", "a", "1")})
	s.ready("other")
	require.Nil(t, s.applied("web").Status.EvictionStartTime)
}

func TestWorksThatVanishTogetherAreKeptUntilThatIsConfirmed(t *testing.T) {
	const many = 6
	s := newScene(t)
	s.config.Grace = time.Hour
	stop := s.start()
	name := func(i int) string { return fmt.Sprint("web-", i) }
	for i := range many {
		s.create(name(i), []string{configMap(name(i), "a", "1")})
	}
	for i := range many {
		s.ready(name(i))
	}
	stop()
	for i := range many {
		s.forget(name(i))
	}
	s.clock.stop()
	s.start()
	for i := range many {
		s.eventually(func() bool { return s.applied(name(i)).Status.EvictionStartTime != nil }, "%s is not stamped", name(i))
	}
	s.clock.forward(2 * time.Hour)
	for i := range many {
		s.poke(name(i))
	}
	s.eventually(func() bool { return len(s.events("EvictionHeld")) > 0 }, "it is not reported")
	s.never(func() bool {
		for i := range many {
			if s.applied(name(i)) == nil || s.data(name(i), "a") != "1" {
				return true
			}
		}
		return false
	}, 3*second, "objects are removed without confirmation")

	applied := s.applied(name(0))
	require.NoError(t, s.spoke.Resource(applieds).Delete(context.Background(), applied.Name, metav1.DeleteOptions{}))
	s.eventually(func() bool { return s.applied(name(0)) == nil && s.data(name(0), "a") == "-" }, "the confirmed one does not go")
	s.create(name(1), []string{configMap(name(1), "a", "1")})
	s.ready(name(1))
	s.eventually(func() bool { return s.applied(name(1)).Status.EvictionStartTime == nil }, "the one that came back is still missed")
}

// A work whose finalizer is removed by a user while it is being deleted loses its delete
// option; the objects that it keeps are released before.
func TestAnOrphaningWorkThatVanishesWhileItEndsKeepsItsObjects(t *testing.T) {
	s := newScene(t)
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	stop()
	s.update("web", orphan())
	s.remove("web")
	var ending atomic.Bool
	s.sent.Fail(func(side string, r *http.Request) error {
		if side == "spoke" && r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/appliedmanifestworks/") {
			ending.Store(true)
		} else if ending.Load() && strings.Contains(r.URL.Path, "/configmaps/one") {
			return faults.ErrCut
		}
		return nil
	})
	stop = s.start()
	s.eventually(func() bool { a := s.applied("web"); return a != nil && a.DeletionTimestamp != nil }, "the record is not deleted")
	stop()
	s.forget("web")
	s.sent.Fail(nil)
	s.start()
	s.eventually(func() bool { return s.applied("web") == nil }, "the record does not end")
	require.Equal(t, "1", s.data("one", "a"))
	require.Empty(t, s.get(configMaps, "one").GetOwnerReferences())
}

func TestANewHubAddressMovesTheOwnerOver(t *testing.T) {
	for name, tc := range map[string]struct {
		sameAgent  bool
		wantOwners int
	}{
		"with the same agent": {true, 1},
		"with another agent":  {false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			stop := s.start()
			s.create("web", []string{configMap("one", "a", "1")})
			s.ready("web")
			uid := s.get(configMaps, "one").GetUID()
			before := s.applied("web")
			stop()
			s.config.HubHash = strings.Repeat("0", 56) + s.config.HubHash[:8]
			if !tc.sameAgent {
				s.config.AgentID = "another-" + s.config.AgentID
			}
			t.Cleanup(func() {
				for _, a := range s.list(s.spoke, applieds, "") {
					if a.GetUID() == before.UID {
						drop(t, s.spoke, applieds, &a)
					}
				}
			})
			s.start()
			owned := func() bool {
				a, owners := s.applied("web"), s.get(configMaps, "one").GetOwnerReferences()
				return a != nil && len(owners) == tc.wantOwners && slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == a.UID })
			}
			s.eventually(owned, "the new hub's work does not own the object as it should")
			s.never(func() bool { return !owned() }, 2*second, "the owners do not stay")
			require.Equal(t, uid, s.get(configMaps, "one").GetUID())
		})
	}
}

// A record of an earlier address gives up its objects when the one of the new address lists them,
// which may be unable to write them: they must not be left without an owner.
func TestAnObjectThatCannotBeChangedGoesWithItsWorkAtANewHubAddress(t *testing.T) {
	s := newScene(t)
	stop := s.start()
	fixed := replace(configMap("one", "a", "1"), `"data"`, `"immutable":true,"data"`)
	s.create("web", []string{fixed})
	s.ready("web")
	before := s.applied("web").Name
	stop()
	s.config.HubHash = strings.Repeat("0", 56) + s.config.HubHash[:8]
	s.update("web", s.manifests(replace(fixed, `"1"`, `"2"`)))
	s.start()
	s.settled("web", workv1.ConditionApplied, metav1.ConditionFalse)
	s.eventually(func() bool {
		_, err := s.spoke.Resource(applieds).Get(t.Context(), before, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "the record of the earlier address is left")
	s.remove("web")
	s.gone("web")
	require.Equal(t, "-", s.data("one", "a"))
}
