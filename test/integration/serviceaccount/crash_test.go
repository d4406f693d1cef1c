// SPDX-License-Identifier: Apache-2.0

package serviceaccount_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// mortal is a place whose agent dies after a write.
type mortal struct{ *place }

// crash is one thing that an agent does to an account.
type crash struct {
	// there is true when the account has a token before.
	there bool
	// during is what happens while the agent is away, and before the Secret until then.
	during func(t *testing.T, m *mortal, name string)
	done   func(t *testing.T, m *mortal, name string, before *corev1.Secret) bool
	// atLeast is how many writes that takes.
	atLeast int
}

// TestTheAgentOfAccountsMayDieAfterEveryWrite ends the agent after its first write, after its second
// one, and so on, until it has made all: for a new account, for the renewal of a token, for an
// account that was deleted on the cluster, and for one that is asked for no more. After a restart,
// the result is the same as without a fault, and a token in a Secret is always one that works.
func TestTheAgentOfAccountsMayDieAfterEveryWrite(t *testing.T) {
	t.Parallel()
	m := &mortal{start(t).join(t, "mortal")}
	m.stop()
	reported := func(t *testing.T, m *mortal, name string, before *corev1.Secret) bool {
		return m.whole(t, name, before)
	}
	for _, st := range []struct {
		name string
		crash
	}{
		{"new", crash{atLeast: 4, done: reported,
			during: func(t *testing.T, m *mortal, name string) { m.ask(t, name, `{"rotation":{"validity":"10m"}}`) }}},
		{"renewed", crash{there: true, atLeast: 3, done: reported,
			during: func(_ *testing.T, m *mortal, _ string) { m.clock.SetTime(time.Now().Add(9 * time.Minute)) }}},
		{"lost", crash{there: true, atLeast: 4, done: reported,
			during: func(t *testing.T, m *mortal, name string) {
				require.NoError(t, m.onSpoke.Resource(accounts).Namespace(m.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
			}}},
		{"gone", crash{there: true, atLeast: 1,
			during: func(t *testing.T, m *mortal, name string) { m.askNoMore(t, name) },
			done: func(t *testing.T, m *mortal, name string, _ *corev1.Secret) bool {
				return m.account(t, name) == nil && m.secret(t, name) == nil
			}}},
	} {
		writes := 1
		for m.dies(t, fmt.Sprintf("%s-%d", st.name, writes), st.crash, writes) {
			writes++
			require.Less(t, writes, 20, "%s does not converge", st.name)
		}
		t.Logf("%s: %d writes", st.name, writes-1)
		require.Greater(t, writes, st.atLeast, st.name)
	}
}

// dies lets the agent die after this many writes, and then live. It returns whether there were as
// many.
func (m *mortal) dies(t *testing.T, name string, st crash, writes int) bool {
	t.Helper()
	m.clock.SetTime(time.Now())
	var before *corev1.Secret
	if st.there {
		m.start(t, m.hub.Config.Host)
		m.ask(t, name, `{"rotation":{"validity":"10m"}}`)
		_, before = m.reported(t, name)
		m.stop()
	}
	st.during(t, m, name)
	m.named(t, name)
	process := &faults.Process{}
	died := process.DieAfter(writes)
	m.startAs(t, process, m.hub.Config.Host)
	require.True(t, harness.Until(patience, func() bool { return process.Dead() || st.done(t, m, name, before) }), "%s: %v", name, stringer(func() any {
		return process.Seen()
	}))
	m.stop()
	dead := process.Dead()
	if dead {
		<-died
	}
	account := m.account(t, name)
	m.sound(t, name)
	m.start(t, m.hub.Config.Host)
	require.True(t, harness.Until(patience, func() bool { return st.done(t, m, name, before) }), "%s after a restart", name)
	if now := m.account(t, name); account != nil && now != nil {
		require.Equal(t, account.UID, now.UID, "%s: the account was made twice", name)
	}
	m.sound(t, name)
	if m.secret(t, name) != nil {
		m.askNoMore(t, name)
		require.True(t, harness.Until(patience, func() bool { return m.account(t, name) == nil && m.secret(t, name) == nil }), name)
	}
	m.stop()
	return dead
}

// askNoMore deletes a ManagedServiceAccount.
func (m *mortal) askNoMore(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, m.onHub.Resource(asked).Namespace(m.cluster).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// named waits until the rights of the agent name what is asked for.
func (m *mortal) named(t *testing.T, name string) {
	t.Helper()
	_, err := m.onHub.Resource(asked).Namespace(m.cluster).Get(t.Context(), name, metav1.GetOptions{})
	wanted := !apierrors.IsNotFound(err)
	require.True(t, harness.Until(patience, func() bool {
		role, err := typed.Get[rbacv1.Role](t.Context(), m.onHub, roles, m.cluster, authenticationv1beta1.AgentRole)
		if apierrors.IsNotFound(err) {
			return false
		}
		require.NoError(t, err)
		return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.ResourceNames, name) }) == wanted
	}))
}

// sound requires that a token on the hub is one of the account that there is.
func (m *mortal) sound(t *testing.T, name string) {
	t.Helper()
	if s := m.secret(t, name); s != nil && m.account(t, name) != nil && m.claims(t, s).Kubernetes.ServiceAccount.UID == string(m.account(t, name).UID) {
		require.True(t, harness.Until(patience, func() bool { return apierrors.IsForbidden(m.login(t, s)) }), // which was made a moment ago
			"%s: the cluster does not know the bearer of the token", name)
	}
}

// whole reports whether another token than before is on the hub, works, and is what is reported.
func (m *mortal) whole(t *testing.T, name string, before *corev1.Secret) bool {
	t.Helper()
	s, account := m.secret(t, name), m.account(t, name)
	if s == nil || account == nil || before != nil && string(before.Data["token"]) == string(s.Data["token"]) {
		return false
	}
	a, err := typed.Get[authenticationv1beta1.ManagedServiceAccount](t.Context(), m.onHub, asked, m.cluster, name)
	require.NoError(t, err)
	claims := m.claims(t, s)
	return says("TokenReported", metav1.ConditionTrue, "TokenReported")(a) && a.Status.ExpirationTimestamp.Unix() == claims.Expires &&
		claims.Kubernetes.ServiceAccount.UID == string(account.UID) && apierrors.IsForbidden(m.login(t, s))
}

// claims is what a token says.
type claims struct {
	Expires    int64 `json:"exp"`
	Kubernetes struct {
		ServiceAccount struct {
			UID string `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

func (m *mortal) claims(t *testing.T, s *corev1.Secret) (out claims) {
	t.Helper()
	parts := strings.Split(string(s.Data["token"]), ".")
	require.Len(t, parts, 3)
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}
