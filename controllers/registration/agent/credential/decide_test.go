// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

var (
	now   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	me    = agent.Identity{Cluster: "c1", Agent: "a1"}
	other = agent.Identity{Cluster: "c1", Agent: "a2"}
)

func key(t *testing.T) []byte {
	t.Helper()
	k, err := request.NewKey()
	require.NoError(t, err)
	return k
}

// sign issues a certificate for the key, valid from and until the given times from now.
func sign(t *testing.T, keyPEM []byte, id agent.Identity, from, until time.Duration) []byte {
	t.Helper()
	k, err := request.ReadKey(keyPEM)
	require.NoError(t, err)
	return certify(t, k, &x509.Certificate{
		SerialNumber: big.NewInt(256), NotBefore: now.Add(from), NotAfter: now.Add(until),
		Subject: pkix.Name{CommonName: id.CommonName(), Organization: id.Organizations()},
	})
}

func certify(t *testing.T, k *ecdsa.PrivateKey, template *x509.Certificate) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func hubConfig() *kubeconfig.Config {
	return &kubeconfig.Config{ClusterEntry: "hub", Server: "https://hub:6443", Token: "t"}
}

// world is a State that a table changes.
type world struct {
	t *testing.T
	State
	key []byte
}

// joinedFor is an agent with a certificate of an hour's lifetime, of which the given part has
// passed.
func joinedFor(t *testing.T, passed time.Duration) *world {
	w := &world{t: t, key: key(t)}
	w.State = State{Now: now, Identity: me, Bootstrap: Bootstrap{Present: true, Config: hubConfig(), Digest: "d"}}
	w.keep(hubConfig(), me, sign(t, w.key, me, -passed, time.Hour-passed))
	return w
}

func (w *world) keep(c *kubeconfig.Config, id agent.Identity, cert []byte) {
	text, err := c.Kept()
	require.NoError(w.t, err)
	w.Kept = ReadKept(Secret{Seen: request.Seen{Name: "hub"}, Data: map[string][]byte{"kubeconfig": text, "tls.crt": cert, "tls.key": w.key,
		"cluster-name": []byte(id.Cluster), "agent-name": []byte(id.Agent)}}, true)
}

// fresh is an agent that has never joined.
func fresh(t *testing.T) *world {
	return &world{t: t, key: key(t), State: State{
		Now:       now,
		Identity:  me,
		Kept:      ReadKept(Secret{}, false),
		Bootstrap: Bootstrap{Present: true, Config: hubConfig(), Digest: "d"},
	}}
}

// ask puts a pending request into the state.
func (w *world) ask() *world {
	w.Pending = Pending{
		Secret:    &Secret{Seen: request.Seen{Name: "pending"}},
		Pending:   request.Pending{Request: "c1-abcde", Key: w.key},
		Identity:  me,
		Hub:       hubConfig().ID(),
		Bootstrap: "d",
	}
	w.Request = request.Answer{Known: true, Found: true}
	return w
}

// to makes the bootstrap kubeconfig name another address.
func (w *world) to(server string) *world {
	w.Bootstrap.Config.Server = server
	return w
}

func (w *world) with(f func(*State)) *world {
	f(&w.State)
	return w
}

// refused is a hub that has refused the certificate for so long, and was asked so long ago.
func (w *world) refused(unknown bool, since, asked time.Duration) *world {
	w.Unknown, w.Refusal = unknown, Refusal{Since: now.Add(-since), Asked: now.Add(-asked)}
	return w
}

// plan is what is compared of a Plan.
type plan struct {
	Step           request.Step
	Own            bool
	Phase, Renewal Phase
	Attempt        int
	Reason         string
	RequeueAfter   time.Duration
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		state *world
		want  plan
		text  string
	}{
		// Before there is access.
		"no bootstrap secret: nothing can be done": {
			fresh(t).with(func(s *State) { s.Bootstrap = ReadBootstrap("b", nil) }),
			plan{Phase: PhaseNoBootstrap},
			"is missing",
		},
		"a bootstrap secret that is refused": {fresh(t).with(func(s *State) {
			s.Bootstrap = ReadBootstrap("b", map[string][]byte{"kubeconfig": []byte("x: y")})
		}), plan{Phase: PhaseNoBootstrap}, "current-context"},
		"never asked: key and name are kept first": {
			fresh(t),
			plan{Step: request.StepBegin, Phase: PhaseConnecting},
			"preparing",
		},
		"kept for another hub: a new one is started": {
			fresh(t).ask().with(func(s *State) { s.Pending.Hub = "x" }),
			plan{Step: request.StepBegin, Phase: PhaseConnecting},
			"",
		},
		"kept for another name: a new one is started": {
			fresh(t).ask().with(func(s *State) { s.Pending.Identity = other }),
			plan{Step: request.StepBegin, Phase: PhaseConnecting},
			"",
		},
		"kept without a key: a new one is started": {
			fresh(t).ask().with(func(s *State) { s.Pending.Key = nil }),
			plan{Step: request.StepBegin, Phase: PhaseConnecting},
			"",
		},
		"the ManagedCluster comes before the request": {
			fresh(t).ask().with(func(s *State) { s.JoinDue = true }),
			plan{Step: stepJoin, Phase: PhaseConnecting},
			"ManagedCluster",
		},
		"the hub has not answered": {
			fresh(t).ask().with(func(s *State) { s.Request = request.Answer{} }),
			plan{Phase: PhaseConnecting, RequeueAfter: request.Recheck},
			"waiting",
		},
		"the hub does not answer": {
			fresh(t).ask().with(func(s *State) { s.Request = request.Answer{Problem: "refused"} }),
			plan{Phase: PhaseConnecting, RequeueAfter: request.Recheck},
			"refused",
		},
		"the request does not exist yet": {
			fresh(t).ask().with(func(s *State) { s.Request.Found = false }),
			plan{Step: request.StepAsk, Phase: PhaseConnecting},
			"asking",
		},
		"the request that was made is not shown: not made again at once": {fresh(t).ask().with(func(s *State) {
			s.Request.Found, s.Asked = false, now.Add(-4*time.Second)
		}), plan{Phase: PhaseConnecting, RequeueAfter: 7 * time.Second}, "to show"},
		"a request made in the future, which is gone: a new one is started": {fresh(t).ask().with(func(s *State) {
			s.Request.Found, s.Asked = false, now.Add(time.Hour)
		}), plan{Step: request.StepRestart, Phase: PhaseConnecting}, "no longer shows"},
		"the request vanished: a new one is started": {
			fresh(t).ask().with(func(s *State) { s.Request.Found, s.Asked = false, now.Add(-time.Minute) }),
			plan{Step: request.StepRestart, Phase: PhaseConnecting},
			"no longer shows",
		},
		"the request is not answered": {
			fresh(t).ask(),
			plan{Phase: PhaseWaiting, RequeueAfter: joinEvery},
			"c1-abcde waits",
		},
		"the request is denied": {
			fresh(t).ask().with(func(s *State) { s.Request.Denied, s.Request.Message, s.Pending.Attempt = true, "no", 2 }),
			plan{Step: request.StepPostpone, Phase: PhaseDenied, Attempt: 3, Reason: "no"},
			"denied certificate request c1-abcde: no",
		},
		"a denied request waits": {
			fresh(t).ask().with(func(s *State) {
				s.Pending.RetryAfter, s.Pending.Attempt, s.Pending.Reason = now.Add(time.Minute), 2, "no"
			}),
			plan{Phase: PhaseDenied, Attempt: 2, RequeueAfter: time.Minute},
			"no; attempt 3 follows at 2026-01-01T12:01:00Z",
		},
		"a denied request is repeated": {
			fresh(t).ask().with(func(s *State) { s.Pending.RetryAfter, s.Pending.Attempt = now, 1 }),
			plan{Step: request.StepBegin, Phase: PhaseConnecting, Attempt: 1},
			"again",
		},
		"new bootstrap data does not wait": {fresh(t).ask().with(func(s *State) {
			s.Pending.RetryAfter, s.Pending.Attempt, s.Bootstrap.Digest = now.Add(time.Hour), 5, "e"
		}), plan{Step: request.StepBegin, Phase: PhaseConnecting}, "changed"},
		"a denied request is repeated, and why it was denied is not forgotten": {
			fresh(t).ask().with(func(s *State) {
				s.Pending.RetryAfter, s.Pending.Attempt, s.Pending.Reason = now, 1, "the token was revoked"
			}),
			plan{Step: request.StepBegin, Phase: PhaseConnecting, Attempt: 1, Reason: "the token was revoked"},
			"the token was revoked",
		},
		"asked again after a denial, and the hub has not answered": {
			fresh(t).ask().with(func(s *State) {
				s.Request, s.Pending.Attempt, s.Pending.Reason = request.Answer{}, 1, "the token was revoked"
			}),
			plan{Phase: PhaseConnecting, Attempt: 1, RequeueAfter: request.Recheck},
			"after a denied request: the token was revoked",
		},
		"the hub no longer allows reading the request": {
			fresh(t).ask().with(func(s *State) { s.Request.Problem = "Unauthorized" }),
			plan{Phase: PhaseConnecting, RequeueAfter: request.Recheck},
			"c1-abcde was answered: Unauthorized",
		},
		"the clock was set back after a denial: no pause of days": {fresh(t).ask().with(func(s *State) {
			s.Pending.RetryAfter, s.Pending.Attempt = now.Add(24*time.Hour), 1
		}), plan{Step: request.StepBegin, Phase: PhaseConnecting, Attempt: 1}, "again"},
		"the certificate is issued": {
			issuedFor(t, me, func(w *world) []byte { return w.key }),
			plan{Step: request.StepKeep, Phase: PhaseConnecting},
			"keeping",
		},
		"a certificate for another name is not kept": {
			issuedFor(t, other, func(w *world) []byte { return w.key }),
			plan{
				Step:    request.StepPostpone,
				Phase:   PhaseDenied,
				Attempt: 1,
				Reason:  `the certificate is for "system:open-cluster-management:c1:a2", not for "system:open-cluster-management:c1:a1"`,
			},
			"not for",
		},
		"a certificate for another key is not kept": {
			issuedFor(t, me, func(*world) []byte { return key(t) }),
			plan{
				Step:    request.StepPostpone,
				Phase:   PhaseDenied,
				Attempt: 1,
				Reason:  "the issued certificate is for another key",
			},
			"another key",
		},
		"something that is no certificate is not kept": {
			fresh(t).ask().with(func(s *State) { s.Request.Certificate = []byte("x") }),
			plan{
				Step:    request.StepPostpone,
				Phase:   PhaseDenied,
				Attempt: 1,
				Reason:  "the issued certificate: is missing",
			},
			"is missing",
		},
		"an expired certificate was just kept: a pause": {
			joinedFor(t, 2*time.Hour).with(func(s *State) { s.KeptAt = now.Add(-4 * time.Second) }),
			plan{Phase: PhaseConnecting, RequeueAfter: 6 * time.Second},
			"expired",
		},
		"an expired certificate was kept: its request is done with": {
			joinedFor(t, 2*time.Hour).ask().with(func(s *State) { s.Request.Certificate = []byte("x") }),
			plan{Step: request.StepForget, Phase: PhaseConnecting},
			"expired",
		},
		"a renewal is due, and the request before it is done with": {
			joinedFor(t, 46*time.Minute).ask(),
			plan{Own: true, Step: request.StepForget, Phase: PhaseServing},
			"valid until",
		},
		"another hub right after joining: no pause": {
			joinedFor(t, time.Minute).to("https://hub2").with(func(s *State) { s.KeptAt, s.Trial = now, Trial{Known: true} }),
			plan{Step: request.StepBegin, Phase: PhaseConnecting},
			"preparing",
		},
		"the hub may have moved: the certificate is tried": {
			joinedFor(t, time.Minute).to("https://hub2"),
			plan{Step: stepTry, Phase: PhaseConnecting},
			"the hub is at https://hub2 now",
		},
		"the hub moved and knows the certificate": {
			joinedFor(t, time.Minute).to("https://hub2").with(func(s *State) { s.Trial = Trial{Known: true, Taken: true} }),
			plan{Step: request.StepRewrite, Phase: PhaseConnecting},
			"knows the kept certificate",
		},
		"the hub has another authority: it is tried": {
			joinedFor(t, time.Minute).with(func(s *State) { s.Bootstrap.Config.CAData = []byte("x") }),
			plan{Step: stepTry, Phase: PhaseConnecting},
			"trying",
		},
		"the hub moved, the certificate expired: not tried": {
			joinedFor(t, 2*time.Hour).to("https://hub2"),
			plan{Step: request.StepBegin, Phase: PhaseConnecting},
			"preparing",
		},
		"an expired certificate: back to bootstrap": {
			joinedFor(t, 2*time.Hour),
			plan{Step: request.StepBegin, Phase: PhaseConnecting},
			"",
		},
		"expired, and the bootstrap secret is gone": {
			joinedFor(t, 2*time.Hour).with(func(s *State) { s.Bootstrap = Bootstrap{Problem: "missing"} }),
			plan{Phase: PhaseNoBootstrap},
			"missing",
		},
		"another hub by its entry: back to bootstrap": {
			joinedFor(t, time.Minute).with(func(s *State) { s.Bootstrap.Config.ClusterEntry = "new" }),
			plan{Step: request.StepBegin, Phase: PhaseConnecting},
			"",
		},
		"another identity: back to bootstrap": {
			joinedFor(t, time.Minute).with(func(s *State) { s.Identity = other }),
			plan{Step: request.StepBegin, Phase: PhaseConnecting},
			"",
		},
		"the names in the secret lie about the certificate": {
			lying(t),
			plan{Step: request.StepBegin, Phase: PhaseConnecting},
			"",
		},

		// With access.
		"joined: nothing to do until the renewal": {
			joinedFor(t, 15*time.Minute),
			plan{Own: true, Phase: PhaseServing, RequeueAfter: clockEvery},
			"valid until",
		},
		"joined, and the renewal is near": {
			joinedFor(t, 44*time.Minute),
			plan{Own: true, Phase: PhaseServing, RequeueAfter: time.Minute},
			"valid until",
		},
		"the certificate begins in the future: it is used, and the difference of the clocks is reported": {
			joinedFor(t, -10*time.Minute),
			plan{Own: true, Phase: PhaseServing, RequeueAfter: clockEvery},
			"valid from 2026-01-01T12:10:00Z on, which this clock has not reached",
		},
		"joined without a bootstrap secret": {
			joinedFor(t, 15*time.Minute).with(func(s *State) { s.Bootstrap = Bootstrap{} }),
			plan{Own: true, Phase: PhaseServing, RequeueAfter: clockEvery},
			"valid until",
		},
		"joined: what was pending is removed": {
			joinedFor(t, 15*time.Minute).ask(),
			plan{Own: true, Step: request.StepForget, Phase: PhaseServing},
			"valid until",
		},
		"joined: another TLS server name is taken on": {
			joinedFor(t, 15*time.Minute).with(func(s *State) { s.Bootstrap.Config.TLSServerName = "n" }),
			plan{Own: true, Step: request.StepRewrite, Phase: PhaseServing},
			"valid until",
		},
		"renewal begins under the own identity": {
			joinedFor(t, 46*time.Minute),
			plan{
				Own:          true,
				Step:         request.StepBegin,
				Phase:        PhaseServing,
				Renewal:      PhaseConnecting,
				RequeueAfter: 14 * time.Minute,
			},
			"renewing",
		},
		"renewal needs no ManagedCluster": {
			joinedFor(t, 46*time.Minute).ask().with(func(s *State) { s.JoinDue, s.Pending.Key = true, key(t) }),
			plan{Own: true, Phase: PhaseServing, Renewal: PhaseWaiting, RequeueAfter: 14 * time.Minute},
			"waits",
		},
		"a denied renewal takes nothing away": {
			joinedFor(t, 46*time.Minute).ask().with(func(s *State) { s.Request.Denied, s.Pending.Key = true, key(t) }),
			plan{
				Own:          true,
				Step:         request.StepPostpone,
				Phase:        PhaseServing,
				Renewal:      PhaseDenied,
				Attempt:      1,
				RequeueAfter: 14 * time.Minute,
			},
			"denied",
		},
		"the hub does not know the certificate: it is asked directly": {
			joinedFor(t, 15*time.Minute).refused(true, time.Hour, time.Hour),
			plan{Own: true, Step: stepInquire, Phase: PhaseServing, RequeueAfter: clockEvery},
			"valid until",
		},
		"it was asked a moment ago": {
			joinedFor(t, 15*time.Minute).refused(true, 4*time.Second, 4*time.Second),
			plan{Own: true, Phase: PhaseServing, RequeueAfter: 6 * time.Second},
			"valid until",
		},
		"it refused for a moment: it is asked again": {
			joinedFor(t, 15*time.Minute).refused(false, 39*time.Second, 10*time.Second),
			plan{Own: true, Step: stepInquire, Phase: PhaseServing, RequeueAfter: clockEvery},
			"valid until",
		},
		"it has refused for good: back to bootstrap": {
			joinedFor(t, 15*time.Minute).refused(true, 30*time.Second, 0),
			plan{Step: request.StepBegin, Phase: PhaseConnecting},
			"preparing",
		},
		"it has refused for good, and the request waits: it is asked now and then": {
			joinedFor(t, 15*time.Minute).ask().refused(false, time.Hour, 4*time.Minute).with(func(s *State) { s.Pending.Key = key(t) }),
			plan{Phase: PhaseWaiting, RequeueAfter: time.Minute},
			"waits for approval",
		},
		"it has refused for good, and the time has come to ask it": {
			joinedFor(t, 15*time.Minute).ask().refused(false, time.Hour, 5*time.Minute).with(func(s *State) { s.Pending.Key = key(t) }),
			plan{Step: stepInquire, Phase: PhaseWaiting, RequeueAfter: joinEvery},
			"waits for approval",
		},
		"it refuses, and there is no bootstrap secret: nothing is given up": {
			joinedFor(t, 15*time.Minute).refused(true, time.Hour, 0).with(func(s *State) { s.Bootstrap = Bootstrap{} }),
			plan{Own: true, Phase: PhaseServing, RequeueAfter: clockEvery},
			"valid until",
		},
		"a short certificate rests after its issue": {
			joinedFor(t, 46*time.Minute).with(func(s *State) { s.KeptAt = now.Add(-time.Second) }),
			plan{Own: true, Phase: PhaseServing, RequeueAfter: 9 * time.Second},
			"valid until",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.state.State)
			require.Contains(t, got.Message, tc.text)
			require.Equal(t, tc.want, plan{got.Step, got.Own, got.Phase, got.Renewal, got.Attempt, got.Reason, got.RequeueAfter})
		})
	}
}

func issuedFor(t *testing.T, id agent.Identity, k func(*world) []byte) *world {
	w := fresh(t).ask()
	w.Request.Certificate = sign(t, k(w), id, -time.Minute, time.Hour)
	return w
}

// lying holds a certificate of another agent under the names of this one.
func lying(t *testing.T) *world {
	w := joinedFor(t, time.Minute)
	w.keep(hubConfig(), me, sign(t, w.key, other, -time.Minute, time.Hour))
	return w
}

func TestRenewalIsBetween75And80PercentAndStable(t *testing.T) {
	k, err := request.ReadKey(key(t))
	require.NoError(t, err)
	seen := map[time.Duration]bool{}
	for serial := range 256 {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(int64(serial) + 512),
			NotBefore:    now,
			NotAfter:     now.Add(100 * time.Hour),
		}
		chain, err := request.ReadChain(certify(t, k, leaf))
		require.NoError(t, err)
		s := State{Kept: Kept{Leaf: chain[0], Expires: chain[0].NotAfter}}
		after := s.renewAt().Sub(now)
		require.GreaterOrEqual(t, after, 75*time.Hour)
		require.LessOrEqual(t, after, 80*time.Hour)
		require.Equal(t, after, s.renewAt().Sub(now))
		seen[after] = true
	}
	require.Greater(t, len(seen), 200)
}

func TestGroupsOfACertificateAreCompared(t *testing.T) {
	k, err := request.ReadKey(key(t))
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		subject pkix.Name
		fits    bool
	}{
		"as asked for": {pkix.Name{CommonName: me.CommonName(), Organization: me.Organizations()}, true},
		"in another order": {
			pkix.Name{
				CommonName:   me.CommonName(),
				Organization: []string{me.Organizations()[1], me.Organizations()[0]},
			},
			true,
		},
		"a group less": {pkix.Name{CommonName: me.CommonName(), Organization: me.Organizations()[:1]}, false},
		"a group more": {
			pkix.Name{CommonName: me.CommonName(), Organization: append(me.Organizations(), "system:masters")},
			false,
		},
		"a unit": {
			pkix.Name{CommonName: me.CommonName(), Organization: me.Organizations(), OrganizationalUnit: []string{"x"}},
			false,
		},
		"a longer name": {pkix.Name{CommonName: me.CommonName() + "x", Organization: me.Organizations()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			chain, err := request.ReadChain(certify(
				t, k, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: tc.subject, NotAfter: now},
			))
			require.NoError(t, err)
			require.Equal(t, tc.fits, misfit(chain[0], me) == "")
		})
	}
}

// TestTheClockJumpsAndComesBack takes one certificate through a clock that is set forward
// beyond its expiry and back again.
func TestTheClockJumpsAndComesBack(t *testing.T) {
	w := joinedFor(t, 15*time.Minute)
	require.True(t, Decide(w.State).Own)
	w.Now = now.Add(48 * time.Hour)
	p := Decide(w.State)
	require.Equal(t, request.StepBegin, p.Step, "it has expired by this clock: the bootstrap identity is used")
	require.False(t, p.Own)
	w.ask().Now = now
	p = Decide(w.State)
	require.True(t, p.Own, "the stored certificate is valid as before")
	require.Equal(t, request.StepForget, p.Step)
}
