// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func hubConfig() *kubeconfig.Config {
	return &kubeconfig.Config{ClusterEntry: "hub", Server: "https://hub:6443"}
}

// certify returns a certificate for the key, as PEM.
func certify(t *testing.T, key []byte, subject pkix.Name) []byte {
	t.Helper()
	k, err := request.ReadKey(key)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(256),
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(time.Hour),
		Subject:      subject,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// world is a State that a table changes: initially a new registration whose namespace exists.
type world struct {
	t *testing.T
	State
	key []byte
}

func newWorld(t *testing.T, driver addonv1alpha1.DriverType) *world {
	t.Helper()
	key, err := request.NewKey()
	require.NoError(t, err)
	w := Want{
		Target: Target{Namespace: "ns", Name: "web-hub-kubeconfig"}, Cluster: "c1", AddOn: "web", Driver: driver,
		Signer: addonv1alpha1.KubeAPIServerSigner, Hub: "h",
	}
	w.Subject, err = subjectOf("c1", "web", true, addonv1alpha1.Subject{})
	require.NoError(t, err)
	return &world{t, State{Now: now, Want: w, Digest: w.Digest(), Kubeconfig: "k", Namespace: Present}, key}
}

// held gives the add-on a credential that is renewed and expires after the given times.
func (w *world) held(renew, until time.Duration) *world {
	l := Life{Renew: now.Add(renew), Until: now.Add(until), UID: "u1", Owner: "c1/web-agent"}
	w.Held = &Secret{AddOn: "web", Digest: w.Digest, Cluster: "c1", Kubeconfig: "k", Certificate: l, Token: l}
	return w
}

func (w *world) pending(change func(*request.Pending)) *world {
	p := &request.Pending{Request: "addon-c1-web-abcde", Key: w.key}
	change(p)
	w.Pending = &Secret{AddOn: "web", Digest: w.Digest, Pending: p}
	return w
}

func (w *world) asked(a request.Answer) *world {
	w.Answer = a
	return w.pending(func(*request.Pending) {})
}

func (w *world) issued() request.Answer {
	return request.Answer{Known: true, Found: true, Certificate: certify(w.t, w.key, w.Want.Subject)}
}

func TestDecideCertificate(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*world)
		step    request.Step
		phase   Phase
		message string
		requeue time.Duration
	}{
		"a new registration": {func(*world) {}, request.StepBegin, PhaseWaiting, "preparing", 0},
		"one that is refused": {
			func(w *world) { w.Want.Problem = "no" },
			request.StepNone,
			PhaseFailed,
			"no",
			0,
		},
		"an add-on being deleted gets nothing": {
			func(w *world) { w.Deleting = true },
			request.StepNone,
			PhaseIdle,
			"",
			0,
		},
		"nor loses what it has": {
			func(w *world) { w.held(time.Hour, 2*time.Hour).Digest, w.Deleting = "other", true },
			request.StepNone,
			PhaseIdle,
			"",
			0,
		},
		"and has it renewed": {
			func(w *world) { w.held(-time.Second, time.Hour); w.Deleting = true },
			request.StepBegin,
			PhaseServing,
			"valid until",
			time.Hour,
		},
		"another registration drops the old": {
			func(w *world) { w.held(time.Hour, 2*time.Hour).Digest = "other" },
			stepDrop,
			PhaseWaiting,
			"changed",
			0,
		},
		"a good one is left alone": {
			func(w *world) { w.held(time.Minute, 2*time.Hour) },
			request.StepNone,
			PhaseServing,
			"valid until",
			time.Minute,
		},
		"but checked from time to time": {
			func(w *world) { w.held(24*time.Hour, 48*time.Hour) },
			request.StepNone,
			PhaseServing,
			"",
			time.Hour,
		},
		"another kubeconfig is written": {
			func(w *world) { w.held(time.Minute, time.Hour); w.Kubeconfig = "k2" },
			request.StepRewrite,
			PhaseServing,
			"",
			0,
		},
		"another cluster name is written": {
			func(w *world) { w.held(time.Minute, time.Hour).Held.Cluster = "c2" },
			request.StepRewrite,
			PhaseServing,
			"",
			0,
		},
		"what is pending is forgotten": {
			func(w *world) { w.held(time.Minute, time.Hour).pending(func(*request.Pending) {}) },
			request.StepForget,
			PhaseServing,
			"",
			0,
		},
		"it is time to renew": {
			func(w *world) { w.held(-time.Second, 30*time.Minute) },
			request.StepBegin,
			PhaseServing,
			"valid until",
			30 * time.Minute,
		},
		"but not just after it was kept": {
			func(w *world) { w.held(-time.Second, time.Hour).KeptAt = now.Add(-time.Second) },
			request.StepNone,
			PhaseServing,
			"",
			9 * time.Second,
		},
		"it expired": {
			func(w *world) { w.held(-time.Hour, 0) },
			request.StepBegin,
			PhaseWaiting,
			"preparing",
			0,
		},
		"it was issued a moment ago, expired": {
			func(w *world) { w.held(-time.Hour, 0).KeptAt = now.Add(-time.Second) },
			request.StepNone,
			PhaseWaiting,
			"expired",
			9 * time.Second,
		},
		"it cannot be read": {
			func(w *world) { w.held(time.Hour, 2*time.Hour).Held.Certificate.Problem = "bad" },
			request.StepBegin,
			PhaseWaiting,
			"",
			0,
		},

		"another one was asked for": {
			func(w *world) { w.asked(w.issued()).Pending.Digest = "other" },
			request.StepBegin,
			PhaseWaiting,
			"preparing",
			0,
		},
		"the key is lost": {
			func(w *world) { w.pending(func(p *request.Pending) { p.Key = nil }) },
			request.StepBegin,
			PhaseWaiting,
			"preparing",
			0,
		},
		"the hub has not answered": {
			func(w *world) { w.asked(request.Answer{}) },
			request.StepNone,
			PhaseWaiting,
			"waiting for an answer",
			request.Recheck,
		},
		"the hub cannot be asked": {
			func(w *world) { w.asked(request.Answer{Problem: "forbidden"}) },
			request.StepNone,
			PhaseWaiting,
			"forbidden",
			request.Recheck,
		},
		"it is not on the hub yet": {
			func(w *world) { w.asked(request.Answer{Known: true}) },
			request.StepAsk,
			PhaseWaiting,
			"",
			0,
		},
		"it was made and is not shown": {func(w *world) {
			w.asked(request.Answer{Known: true}).Asked = now.Add(-4 * time.Second)
		}, request.StepNone, PhaseWaiting, "to show", 7 * time.Second},
		"it was made in the future and is gone": {
			func(w *world) { w.asked(request.Answer{Known: true}).Asked = now.Add(time.Hour) },
			request.StepRestart,
			PhaseWaiting,
			"no longer shows",
			0,
		},
		"it is no longer on the hub": {
			func(w *world) { w.asked(request.Answer{Known: true}).Asked = now.Add(-time.Minute) },
			request.StepRestart,
			PhaseWaiting,
			"no longer shows",
			0,
		},
		"nobody has approved it": {
			func(w *world) { w.asked(request.Answer{Known: true, Found: true}) },
			request.StepNone,
			PhaseWaiting,
			"addon-c1-web-abcde waits for approval",
			0,
		},
		"it was denied": {
			func(w *world) { w.asked(request.Answer{Known: true, Found: true, Denied: true, Message: "no"}) },
			request.StepPostpone,
			PhaseFailed,
			"denied certificate request addon-c1-web-abcde: no",
			0,
		},
		"it is not yet time to ask again": {func(w *world) {
			w.pending(func(p *request.Pending) {
				*p = request.Pending{RetryAfter: now.Add(time.Minute), Attempt: 2, Reason: "no"}
			})
		}, request.StepNone, PhaseFailed, "no; attempt 3 follows at 2026-01-01T12:01:00Z", time.Minute},
		"it is time to ask again": {func(w *world) {
			w.pending(func(p *request.Pending) { *p = request.Pending{RetryAfter: now, Attempt: 2} })
		}, request.StepBegin, PhaseWaiting, "", 0},
		"it was issued": {
			func(w *world) { w.asked(w.issued()) },
			request.StepKeep,
			PhaseWaiting,
			"keeping",
			0,
		},
		"for a namespace that the agent may not look for": {
			func(w *world) { w.asked(w.issued()).Namespace = Blind },
			request.StepKeep,
			PhaseWaiting,
			"keeping",
			0,
		},
		"for a namespace that is missing": {
			func(w *world) { w.asked(w.issued()).Namespace = Missing },
			stepHold,
			PhaseWaiting,
			"namespace ns does not exist",
			0,
		},
		"for one that is not known yet": {
			func(w *world) { w.asked(w.issued()).Namespace = Unknown },
			request.StepNone,
			PhaseWaiting,
			"looking for namespace ns",
			request.Recheck,
		},
		"it is held for the namespace": {func(w *world) {
			w.pending(func(p *request.Pending) { p.Certificate = w.issued().Certificate }).Namespace = Missing
		}, request.StepNone, PhaseWaiting, "does not exist", 0},
		"the namespace came": {
			func(w *world) { w.pending(func(p *request.Pending) { p.Certificate = w.issued().Certificate }) },
			request.StepKeep,
			PhaseWaiting,
			"",
			0,
		},
		"for another subject": {
			func(w *world) { a := w.issued(); w.asked(a).Want.Subject.CommonName = "x" },
			request.StepPostpone,
			PhaseFailed,
			"another subject",
			0,
		},
		"for another key": {
			func(w *world) { w.asked(newWorld(w.t, "csr").issued()) },
			request.StepPostpone,
			PhaseFailed,
			"another key",
			0,
		},
		"the clock was set back after a denial": {func(w *world) {
			w.pending(func(p *request.Pending) {
				*p = request.Pending{RetryAfter: now.Add(24 * time.Hour), Attempt: 2, Reason: "no"}
			})
		}, request.StepBegin, PhaseWaiting, "preparing", 0},
		"what was issued is kept and expired": {func(w *world) {
			w.held(-time.Hour, 0).asked(w.issued()).KeptAt = now.Add(-time.Second)
			w.Held.Key = textDigest(w.key)
		}, request.StepForget, PhaseWaiting, "expired", 0},
		"what was issued is kept and old": {func(w *world) {
			w.held(-time.Hour, time.Hour).asked(w.issued())
			w.Held.Key = textDigest(w.key)
		}, request.StepForget, PhaseServing, "valid until", 0},
		"a renewal waits while the clock is set": {
			func(w *world) { w.held(-time.Second, 48*time.Hour).asked(request.Answer{Known: true, Found: true}) },
			request.StepNone,
			PhaseServing,
			"",
			time.Hour,
		},
		"a denied renewal is reported": {func(w *world) {
			w.held(-time.Second, time.Hour).asked(request.Answer{Known: true, Found: true, Denied: true, Message: "no"})
		}, request.StepPostpone, PhaseFailed, "no", 0},
		"a renewal that waits isn't": {
			func(w *world) { w.held(-time.Second, time.Hour).asked(request.Answer{Known: true, Found: true}) },
			request.StepNone,
			PhaseServing,
			"valid until",
			time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, addonv1alpha1.DriverTypeCSR)
			tc.change(w)
			p := Decide(w.State)
			require.Equal(t, tc.step, p.Step)
			require.Equal(t, tc.phase, p.Phase)
			require.Contains(t, p.Message, tc.message)
			require.Equal(t, tc.requeue, p.RequeueAfter)
		})
	}
}

func TestDecideToken(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*world)
		step    request.Step
		phase   Phase
		message string
	}{
		"the hub is not ready": {func(w *world) { w.Waiting = "not yet" }, request.StepNone, PhaseWaiting, "not yet"},
		"a new one":            {func(*world) {}, stepToken, PhaseWaiting, "asking for a token"},
		"the namespace is missing": {
			func(w *world) { w.Namespace = Missing },
			request.StepNone,
			PhaseWaiting,
			"does not exist",
		},
		"a good one": {
			func(w *world) { w.held(time.Minute, time.Hour) },
			request.StepNone,
			PhaseServing,
			"Addon token refreshed, expires at 2026-01-01T13:00:00Z",
		},
		"a good one while the hub is not": {
			func(w *world) { w.held(time.Minute, time.Hour).Infrastructure, w.Waiting = "", "not yet" },
			request.StepNone,
			PhaseServing,
			"",
		},
		"a fifth of its life is left": {
			func(w *world) { w.held(0, time.Hour) },
			stepToken,
			PhaseServing,
			"expires at",
		},
		"it expired": {func(w *world) { w.held(-time.Hour, 0) }, stepToken, PhaseWaiting, ""},
		"it cannot be read": {
			func(w *world) { w.held(time.Minute, time.Hour).Held.Token.Problem = "bad" },
			stepToken,
			PhaseWaiting,
			"",
		},
		"the ServiceAccount was created again": {
			func(w *world) { w.held(time.Minute, time.Hour).Infrastructure = "u2" },
			stepToken,
			PhaseWaiting,
			"",
		},
		"it belongs to another ServiceAccount": {
			func(w *world) { w.held(time.Minute, time.Hour).Held.Token.Owner = "c1/other" },
			stepToken,
			PhaseWaiting,
			"",
		},
		"a leftover request is forgotten": {
			func(w *world) { w.held(time.Minute, time.Hour).pending(func(*request.Pending) {}) },
			request.StepForget,
			PhaseServing,
			"",
		},
		"it was made for a certificate's holder": {
			func(w *world) { w.held(time.Minute, time.Hour).Held.Digest = "x" },
			stepDrop,
			PhaseWaiting,
			"changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, addonv1alpha1.DriverTypeToken)
			w.Infrastructure = "u1"
			tc.change(w)
			p := Decide(w.State)
			require.Equal(t, tc.step, p.Step)
			require.Equal(t, tc.phase, p.Phase)
			require.Contains(t, p.Message, tc.message)
			require.Empty(t, w.watched())
		})
	}
}

// token is an unsigned token with these claims.
func token(claims map[string]any) []byte {
	raw, _ := json.Marshal(claims)
	return []byte("e30." + base64.RawURLEncoding.EncodeToString(raw) + ".sig")
}

func TestTokensAreRead(t *testing.T) {
	whose := map[string]any{"namespace": "c1", "serviceaccount": map[string]any{"name": "web-agent", "uid": "u1"}}
	got := readToken(token(map[string]any{"iat": now.Unix(), "exp": now.Unix() + 1000, "kubernetes.io": whose}))
	want := Life{
		Until: now.Add(1000 * time.Second),
		Renew: now.Add(800 * time.Second),
		UID:   "u1",
		Owner: "c1/web-agent",
	}
	require.Empty(t, cmp.Diff(want, got, cmp.Comparer(time.Time.Equal)))
	for name, raw := range map[string][]byte{
		"nothing":              nil,
		"a text":               []byte("token"),
		"no base64":            []byte("a.!.c"),
		"no JSON":              []byte("a.YQ.c"),
		"no times":             token(map[string]any{"kubernetes.io": whose}),
		"an end before":        token(map[string]any{"iat": 10, "exp": 5, "kubernetes.io": whose}),
		"an end too late":      token(map[string]any{"iat": 10, "exp": int64(1) << 60, "kubernetes.io": whose}),
		"of no ServiceAccount": token(map[string]any{"iat": 10, "exp": 50}),
		"of great length": append(
			token(map[string]any{"iat": 10, "exp": 50, "kubernetes.io": whose}),
			make([]byte, maxToken)...,
		),
	} {
		t.Run(name, func(t *testing.T) {
			got := readToken(raw)
			require.NotEmpty(t, got.Problem)
			require.Zero(t, got.Until)
			require.NotContains(t, got.Problem, "sig")
		})
	}
}

func TestPendingSurvivesItsSecret(t *testing.T) {
	for name, want := range map[string]request.Pending{
		"a request":     {Request: "r", Key: []byte("k")},
		"a denied one":  {Attempt: 3, RetryAfter: now.Add(time.Minute), Reason: "no"},
		"an issued one": {Request: "r", Key: []byte("k"), Attempt: 1, Certificate: []byte("c")},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, cmp.Diff(want, request.ReadPending(want.Data())))
		})
	}
}

func TestConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		reports []report
		want    string
	}{
		"none": {nil, ""},
		"all have theirs": {
			[]report{{
				phase:   PhaseServing,
				message: "a",
			}, {
				phase:   PhaseServing,
				message: "b",
			}},
			"True ClientCertificateUpdated a; b",
		},
		"one waits": {
			[]report{{
				phase:   PhaseServing,
				message: "a",
			}, {
				phase:   PhaseWaiting,
				message: "b",
			}},
			"Unknown CredentialPending b",
		},
		"one waits for a moment": {[]report{{phase: PhaseWaiting, message: "b", fresh: true}}, "False Before old"},
		"one failed": {
			[]report{{
				phase:   PhaseWaiting,
				message: "a",
			}, {
				phase:   PhaseFailed,
				message: "b",
			}},
			"False ClientCertificateUpdateFailed b",
		},
		"the add-on is being deleted": {[]report{{phase: PhaseIdle}}, "False Before old"},
		"tokens are told elsewhere":   {[]report{{token: true, phase: PhaseServing}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &addonv1alpha1.ManagedClusterAddOn{}
			setConditionOf(
				a, []report{{phase: PhaseFailed, message: "old"}}, now,
				metav1.Condition{Type: addonv1alpha1.ConditionClusterCertificateRotated}, "Before",
			)
			setConditions(a, tc.reports, now)
			got := ""
			for _, c := range a.Status.Conditions {
				if c.Type == addonv1alpha1.ConditionClusterCertificateRotated {
					got = string(c.Status) + " " + c.Reason + " " + c.Message
				}
			}
			require.Equal(t, tc.want, got)
		})
	}
}
