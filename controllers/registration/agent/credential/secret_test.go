// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
)

func TestPendingSurvivesItsSecret(t *testing.T) {
	for name, want := range map[string]Pending{
		"a request": {
			Pending:   request.Pending{Request: "c1-abcde", Key: []byte("k")},
			Identity:  me,
			Hub:       "h",
			Bootstrap: "b",
		},
		"a denied one": {
			Pending:   request.Pending{Attempt: 3, RetryAfter: now.Add(time.Minute), Reason: "no"},
			Identity:  me,
			Hub:       "h",
			Bootstrap: "b",
		},
		"a second time": {
			Pending:   request.Pending{Request: "c1-abcde", Key: []byte("k"), Attempt: 2},
			Identity:  me,
			Hub:       "h",
			Bootstrap: "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := Secret{Seen: request.Seen{Name: "hub-kubeconfig-pending"}, Data: want.data()}
			got := readPending(s, true)
			require.NotNil(t, got.Secret)
			got.Secret = nil
			require.Empty(t, cmp.Diff(want, got))
		})
	}
	require.Nil(t, readPending(Secret{}, false).Secret)
}

func TestKeptSecretThatCannotBeUsed(t *testing.T) {
	k, foreign := key(t), key(t)
	text, err := hubConfig().Kept()
	require.NoError(t, err)
	good := map[string][]byte{"kubeconfig": text, "tls.crt": sign(t, k, me, -time.Minute, time.Hour), "tls.key": k}
	require.Empty(t, ReadKept(Secret{Data: good}, true).Problem)
	for name, tc := range map[string]struct {
		change map[string][]byte
		want   string
	}{
		"no kubeconfig":  {map[string][]byte{"kubeconfig": nil}, "kubeconfig"},
		"no certificate": {map[string][]byte{"tls.crt": nil}, "tls.crt"},
		"a broken one": {
			map[string][]byte{"tls.crt": []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
			"not readable",
		},
		"a key, no PEM":    {map[string][]byte{"tls.crt": []byte("x")}, "is missing"},
		"the key of other": {map[string][]byte{"tls.key": foreign}, "do not match"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range good {
				data[key] = value
			}
			for key, value := range tc.change {
				data[key] = value
			}
			require.Contains(t, ReadKept(Secret{Data: data}, true).Problem, tc.want)
		})
	}
	require.Contains(t, ReadKept(Secret{}, false).Problem, "no hub kubeconfig")
}

func TestEarliestEndOfTheChainCounts(t *testing.T) {
	k := key(t)
	text, err := hubConfig().Kept()
	require.NoError(t, err)
	chain := append(sign(t, k, me, -time.Minute, time.Hour), sign(t, key(t), other, -time.Minute, time.Minute)...)
	kept := ReadKept(Secret{Data: map[string][]byte{"kubeconfig": text, "tls.crt": chain, "tls.key": k}}, true)
	require.Equal(t, now.Add(time.Minute), kept.Expires)
	require.Equal(t, me.CommonName(), kept.Leaf.Subject.CommonName)
}

func TestOwnRequestIsKnownByItsKey(t *testing.T) {
	p := Pending{Pending: request.Pending{Request: "c1-abcde", Key: key(t)}, Identity: me}
	w := newRequest(p.Identity, 7200)
	w.Name, w.Key = p.Request, p.Key
	u, err := w.Build()
	require.NoError(t, err)
	require.True(t, request.SameKey(u, p.Key))
	require.False(t, request.SameKey(u, key(t)))
	require.False(t, request.SameKey(&unstructured.Unstructured{Object: map[string]any{}}, p.Key))
	require.False(t, request.SameKey(u, []byte("x")))
	seconds, _, _ := unstructured.NestedInt64(u.Object, "spec", "expirationSeconds")
	require.Equal(t, int64(7200), seconds)
}
