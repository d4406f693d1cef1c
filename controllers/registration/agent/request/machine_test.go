// SPDX-License-Identifier: Apache-2.0

package request

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// kept is a state with a valid certificate that is renewed in half an hour.
func kept(change func(*State)) State {
	s := State{Now: noon, Renew: noon.Add(30 * time.Minute), Every: time.Hour, Meant: true}
	change(&s)
	return s
}

func TestWhileNothingNewIsAskedFor(t *testing.T) {
	old := noon.Add(-time.Minute)
	for name, tc := range map[string]struct {
		state State
		want  Plan
		rests bool
	}{
		"good until the renewal": {kept(func(*State) {}), Plan{RequeueAfter: 30 * time.Minute}, true},
		"good, and clocks are set": {
			kept(func(s *State) { s.Every = time.Minute }),
			Plan{RequeueAfter: time.Minute},
			true,
		},
		"what lies beside it is written": {
			kept(func(s *State) { s.Stale, s.Noted = true, true }),
			Plan{Step: StepRewrite},
			true,
		},
		"what is pending is removed": {kept(func(s *State) { s.Noted = true }), Plan{Step: StepForget}, true},
		"a renewal is due":           {kept(func(s *State) { s.Renew = noon }), Plan{}, false},
		"due, and it was kept just now": {
			kept(func(s *State) { s.Renew, s.KeptAt = old, noon.Add(-time.Second) }),
			Plan{RequeueAfter: 9 * time.Second},
			true,
		},
		"due, and its request is kept": {
			kept(func(s *State) { s.Renew, s.Noted, s.Done = old, true, true }),
			Plan{Step: StepForget},
			true,
		},
		"bad, and its request is kept": {kept(func(s *State) { s.Unusable, s.Noted, s.Done = "bad", true, true }),
			Plan{Step: StepForget, Stage: Preparing, Message: "bad"}, true},
		"bad": {kept(func(s *State) { s.Unusable = "bad" }), Plan{}, false},
		"bad, and it was kept just now": {kept(func(s *State) { s.Unusable, s.KeptAt = "bad", noon }),
			Plan{Stage: Preparing, Message: "bad", RequeueAfter: settle}, true},
		"bad, and another one is under way": {
			kept(func(s *State) { s.Unusable, s.KeptAt, s.Noted = "bad", noon, true }),
			Plan{},
			false,
		},
		"bad, and made for something else": {
			kept(func(s *State) { s.Unusable, s.KeptAt, s.Meant = "bad", noon, false }),
			Plan{},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, rests := tc.state.Rest()
			require.Equal(t, tc.rests, rests)
			require.Equal(t, tc.want, got)
		})
	}
}

// signed is a certificate for a key.
func signed(t *testing.T, key []byte) []byte {
	t.Helper()
	k, err := ReadKey(key)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(
		rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, k.Public(), k,
	)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestOnTheWayToAnotherCertificate(t *testing.T) {
	key, err := NewKey()
	require.NoError(t, err)
	certificate := signed(t, key)
	denied := Pending{Attempt: 2, Reason: "no", RetryAfter: noon.Add(time.Minute)}
	for name, tc := range map[string]struct {
		change func(*State)
		want   Plan
		says   string
	}{
		"nothing is pending": {func(s *State) { s.Current, s.Pending.Attempt = false, 3 },
			Plan{Step: StepBegin, Stage: Preparing}, "preparing"},
		"the key is lost": {func(s *State) { s.Pending.Key = nil },
			Plan{Step: StepBegin, Stage: Preparing, Attempt: 1}, "preparing"},
		"denied, and it waits": {
			func(s *State) { s.Pending = denied },
			Plan{Stage: Denied, Attempt: 2, RequeueAfter: time.Minute},
			"no; attempt 3 follows at 2026-01-01T12:01:00Z",
		},
		"denied, and the time came": {func(s *State) { s.Pending, s.Now = denied, noon.Add(time.Minute) },
			Plan{Step: StepBegin, Stage: Preparing, Attempt: 2}, "preparing"},
		"denied, the time came, and the reason is told": {
			func(s *State) { s.Pending, s.Now, s.Recall = denied, noon.Add(time.Minute), true },
			Plan{Step: StepBegin, Stage: Preparing, Attempt: 2, Reason: "no"},
			"again after a denied request: no",
		},
		"denied, and the clock was set back": {func(s *State) { s.Pending, s.Now = denied, noon.Add(-24*time.Hour) },
			Plan{Step: StepBegin, Stage: Preparing, Attempt: 2}, "preparing"},
		"denied, and it need not wait": {func(s *State) { s.Pending, s.Anew = denied, "another hub" },
			Plan{Step: StepBegin, Stage: Preparing}, "another hub"},
		"not asked yet": {func(s *State) { s.Answer.Found = false },
			Plan{Step: StepAsk, Stage: Preparing, Attempt: 1, Begun: true}, "asking"},
		"lost": {func(s *State) { s.Answer.Found, s.Asked = false, noon.Add(-time.Hour) },
			Plan{Step: StepRestart, Stage: Preparing, Attempt: 1, Begun: true}, "no longer shows"},
		"open": {func(*State) {},
			Plan{Stage: Waiting, Attempt: 1, Begun: true}, "r1 waits for approval"},
		"the hub has not answered": {func(s *State) { s.Answer = Answer{} },
			Plan{Stage: Preparing, Attempt: 1, Begun: true, RequeueAfter: Recheck}, "waiting for an answer"},
		"the hub has not answered, and the reason is told": {
			func(s *State) { s.Answer, s.Recall, s.Pending.Reason = Answer{}, true, "no" },
			Plan{Stage: Preparing, Attempt: 1, Begun: true, RequeueAfter: Recheck},
			"again after a denied request: no",
		},
		"denied": {
			func(s *State) { s.Answer.Denied, s.Answer.Message = true, "no" },
			Plan{Step: StepPostpone, Stage: Denied, Attempt: 2, Reason: "no", Begun: true},
			"denied certificate request r1: no",
		},
		"issued": {func(s *State) { s.Answer.Certificate = certificate },
			Plan{Step: StepKeep, Stage: Preparing, Attempt: 1, Certificate: certificate, Begun: true}, "keeping"},
		"held": {func(s *State) { s.Pending.Certificate, s.Answer = certificate, Answer{} },
			Plan{Step: StepKeep, Stage: Preparing, Attempt: 1, Certificate: certificate}, "keeping"},
		"issued, and not what was asked for": {func(s *State) {
			s.Answer.Certificate, s.Check = certificate, func(*x509.Certificate) error { return errors.New("not it") }
		}, Plan{Step: StepPostpone, Stage: Denied, Attempt: 2, Reason: "not it", Begun: true}, "not it"},
		"issued, and for no key of ours": {
			func(s *State) {
				other, err := NewKey()
				require.NoError(t, err)
				s.Answer.Certificate = signed(t, other)
			},
			Plan{
				Step:    StepPostpone,
				Stage:   Denied,
				Attempt: 2,
				Reason:  "the issued certificate is for another key",
				Begun:   true,
			},
			"another key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := State{
				Now:     noon,
				Noted:   true,
				Current: true,
				Pending: Pending{Request: "r1", Key: key, Attempt: 1},
				Answer:  Answer{Known: true, Found: true},
				Check:   func(*x509.Certificate) error { return nil },
			}
			tc.change(&s)
			got := s.Request()
			require.Contains(t, got.Message, tc.says)
			got.Message = ""
			require.Equal(t, tc.want, got)
		})
	}
}
