// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const timeout = 10 * time.Minute

// hubs are two hubs that have not been asked.
func hubs() []Hub {
	return []Hub{{Secret: "hub-1", Server: "https://one", ID: "1"}, {Secret: "hub-2", Server: "https://two", ID: "2"}}
}

// using is an agent that has used hub-1 for an hour and saw it a minute ago.
func using(change func(*State)) State {
	s := State{
		Now: now, Hubs: hubs(), Timeout: timeout, Current: "hub-1", Since: now.Add(-time.Hour), Kept: "https://one",
		Signs: Signs{Server: "https://one", At: now.Add(-time.Minute)},
	}
	change(&s)
	return s
}

// looking is an agent without a hub.
func looking(change func(*State)) State {
	s := State{Now: now, Hubs: hubs(), Timeout: timeout, Joining: true}
	change(&s)
	return s
}

func refuse(s *State, reasons ...string) {
	for i, r := range reasons {
		s.Hubs[i].Asked, s.Hubs[i].Refusal = true, r
	}
}

func TestDecide(t *testing.T) {
	const away = "its hub gave no sign of life for 10m0s"
	for name, tc := range map[string]struct {
		state State
		want  Plan
	}{
		"the hub in use gives signs of life: no hub is asked": {
			using(func(*State) {}),
			Plan{Choose: "hub-1", RequeueAfter: 9 * time.Minute},
		},
		"another one that is preferred does not matter": {using(func(s *State) {
			s.Current, s.Signs.Server = "hub-2", "https://two"
		}), Plan{Choose: "hub-2", RequeueAfter: 9 * time.Minute}},
		"it was never seen: time counts from its choice": {using(func(s *State) {
			s.Signs, s.Since = Signs{}, now.Add(-time.Minute)
		}), Plan{Choose: "hub-1", RequeueAfter: 9 * time.Minute}},
		"signs of the hub that was left do not count": {using(func(s *State) {
			s.Signs, s.Since = Signs{Server: "https://two", At: now, Unaccepted: true}, now
		}), Plan{Choose: "hub-1", RequeueAfter: timeout}},
		"the clock was set back: no hub is left for it": {
			using(func(s *State) { s.Signs.At = now.Add(time.Hour) }),
			Plan{Choose: "hub-1", RequeueAfter: time.Hour + timeout},
		},
		"its bootstrap kubeconfig is broken, and there is access": {
			using(func(s *State) { s.Hubs[0].Problem = "broken" }),
			Plan{Choose: "hub-1", RequeueAfter: 9 * time.Minute},
		},
		"its bootstrap kubeconfig is broken, and there is no access": {
			using(func(s *State) { s.Hubs[0].Problem, s.Joining = "broken", true }),
			Plan{Choose: "hub-1", Leaving: "broken", Ask: "hub-2"},
		},
		"it took its acceptance back: the other is asked": {using(func(s *State) { s.Signs.Unaccepted = true }),
			Plan{Choose: "hub-1", Leaving: "its hub does not accept the cluster any more", Ask: "hub-2"}},
		"it took its acceptance back before it was chosen again": {
			using(func(s *State) { s.Signs.Unaccepted, s.Since = true, now }),
			Plan{Choose: "hub-1", RequeueAfter: timeout},
		},
		"it is away for too long: the other is asked": {using(func(s *State) { s.Signs.At = now.Add(-timeout) }),
			Plan{Choose: "hub-1", Leaving: away, Ask: "hub-2"}},
		"away, and the other is usable": {using(func(s *State) {
			s.Signs.At = now.Add(-timeout)
			s.Hubs[1].Asked = true
		}), Plan{Choose: "hub-2", Leaving: away}},
		"away, and the other is not usable: it stays in use": {using(func(s *State) {
			s.Signs.At = now.Add(-timeout)
			s.Hubs[1].Asked, s.Hubs[1].Refusal = true, "refused"
		}), Plan{Choose: "hub-1", Leaving: away, Exhausted: true, Reasons: "hub-2: refused"}},
		"no hub is asked before the pause is over": {using(func(s *State) {
			s.Signs.At, s.Rest, s.Reasons = now.Add(-timeout), now.Add(time.Second), "hub-2: refused"
		}), Plan{Choose: "hub-1", Leaving: away, Reasons: "hub-2: refused", RequeueAfter: time.Second}},
		"it gives signs again during the pause": {
			using(func(s *State) { s.Rest, s.Reasons = now.Add(time.Second), "x" }),
			Plan{Choose: "hub-1", RequeueAfter: 9 * time.Minute},
		},

		"no hub: the preferred is asked first": {looking(func(*State) {}), Plan{Ask: "hub-1"}},
		"the one that access was kept for is first": {
			looking(func(s *State) { s.Kept = "https://two" }),
			Plan{Ask: "hub-2"},
		},
		"the first is refused: the second is asked": {looking(func(s *State) { refuse(s, "no") }), Plan{Ask: "hub-2"}},
		"the second is usable": {
			looking(func(s *State) { refuse(s, "no", "") }),
			Plan{Choose: "hub-2"},
		},
		"both are usable: the preferred": {looking(func(s *State) { refuse(s, "", "") }), Plan{Choose: "hub-1"}},
		"a kubeconfig that cannot be read is named": {looking(func(s *State) {
			s.Hubs[0].Problem = "secret hub-1: broken"
			s.Hubs[1].Asked, s.Hubs[1].Refusal = true, "no"
		}), Plan{Exhausted: true, Reasons: "hub-1: secret hub-1: broken; hub-2: no"}},
		"what was left just now comes last": {
			looking(func(s *State) { s.Hubs[0].CoolUntil, s.Kept = now.Add(time.Second), "https://one" }),
			Plan{Ask: "hub-2"},
		},
		"but it comes": {looking(func(s *State) {
			s.Hubs[0].CoolUntil = now.Add(time.Second)
			s.Hubs[1].Asked, s.Hubs[1].Refusal = true, "no"
		}), Plan{Ask: "hub-1"}},
		"what was left long ago has its old place": {
			looking(func(s *State) { s.Hubs[0].CoolUntil = now }),
			Plan{Ask: "hub-1"},
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, Decide(tc.state)) })
	}
}

func TestAProcessBeginsWithTheHubThatItKnows(t *testing.T) {
	for name, tc := range map[string]struct{ server, pending, want string }{
		"it has access": {"https://two", "", "hub-2"},
		"it has access, and a request for another": {"https://two", "1", "hub-2"},
		"it has asked":                      {"", "2", "hub-2"},
		"it has access to a hub of no list": {"https://three", "1", ""},
		"it knows nothing":                  {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, initialHub(hubs(), tc.server, tc.pending)) })
	}
}

func TestMessagesNameEachHub(t *testing.T) {
	require.Empty(t, message(Plan{Choose: "hub-1"}))
	require.Equal(t, "no hub of the list is usable: hub-1: no", message(Plan{Reasons: "hub-1: no"}))
	require.Equal(
		t, "secret hub-1 is still in use: it is away, and no other hub is usable: hub-2: no",
		message(Plan{Choose: "hub-1", Leaving: "it is away", Reasons: "hub-2: no"}),
	)
}
