// SPDX-License-Identifier: Apache-2.0

package work

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	second      = time.Second
	millisecond = time.Millisecond
)

// forget removes a work from the hub as if it had never been there.
func (s *scene) forget(name string) {
	s.t.Helper()
	for _, w := range s.list(s.hub, works, s.cluster) {
		if w.GetName() == name {
			drop(s.t, s.hub, works, &w)
		}
	}
}

func TestAWorkThatTheHubForgotIsEvictedAfterTheGrace(t *testing.T) {
	s := newScene(t)
	s.config.Grace = 2 * second
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	stop()
	s.forget("web")
	s.start()
	s.eventually(func() bool { a := s.applied("web"); return a != nil && a.Status.EvictionStartTime != nil }, "not stamped")
	require.Equal(t, "1", s.data("one", "a"), "nothing goes before the grace is over")
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
	require.Nil(t, s.applied("web").Status.EvictionStartTime)
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
			s.config.Grace = second
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
			s.eventually(func() bool {
				a := s.applied("web")
				return a != nil && len(a.Status.AppliedResources) == 1 && len(s.get(configMaps, "one").GetOwnerReferences()) == 2
			}, "the new hub's work does not own the object")
			if tc.sameAgent {
				s.eventually(func() bool { return len(s.get(configMaps, "one").GetOwnerReferences()) == 1 }, "the old one still owns it")
			} else {
				require.Never(t, func() bool { return len(s.get(configMaps, "one").GetOwnerReferences()) != 2 }, 2*second, 100*millisecond)
			}
			require.Len(t, s.get(configMaps, "one").GetOwnerReferences(), tc.wantOwners)
			require.Equal(t, uid, s.get(configMaps, "one").GetUID())
		})
	}
}
