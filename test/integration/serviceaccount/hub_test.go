// SPDX-License-Identifier: Apache-2.0

package serviceaccount_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var roles = rbacv1.SchemeGroupVersion.WithResource("roles")

func TestALimitedLife(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "limited")
	for _, spec := range []string{`{"rotation":{},"ttlSecondsAfterCreation":0}`, `{"rotation":{},"ttlSecondsAfterCreation":-1}`, `{}`} {
		u := object(asked.GroupVersion().String(), "ManagedServiceAccount", p.cluster, "bad")
		u.Object["spec"] = map[string]any{}
		require.NoError(t, u.UnmarshalJSON([]byte(`{"apiVersion":"authentication.open-cluster-management.io/v1beta1","kind":"ManagedServiceAccount",
			"metadata":{"namespace":"limited","name":"bad"},"spec":`+spec+`}`)))
		_, err := p.onHub.Resource(asked).Namespace(p.cluster).Create(t.Context(), u, metav1.CreateOptions{})
		require.True(t, apierrors.IsInvalid(err), "%s: %v", spec, err)
	}
	key := func(name string) reconcile.Key { return reconcile.Key{Namespace: p.cluster, Name: name} }
	// Its life is prolonged before it ends, which a busy machine may take a while for.
	ended := p.prolonged(t, "longer")
	p.ask(t, "shorter", `{"rotation":{},"ttlSecondsAfterCreation":86400}`)
	before := time.Now().Truncate(time.Second)
	p.ask(t, "short", `{"rotation":{},"ttlSecondsAfterCreation":5}`)
	gone := func(name string) bool {
		_, err := p.onHub.Resource(asked).Namespace(p.cluster).Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}
	require.True(t, harness.Until(patience, func() bool { return gone("short") }))
	require.False(t, time.Now().Before(before.Add(5*time.Second)), "not before its end")
	p.patch(t, p.onHub, asked, key("shorter"), `{"spec":{"ttlSecondsAfterCreation":1}}`)
	require.True(t, harness.Until(patience, func() bool { return gone("shorter") && p.account(t, "short") == nil && p.account(t, "shorter") == nil }))
	require.True(t, harness.Until(patience, func() bool { return time.Now().After(ended) }))
	require.False(t, gone("longer"))
}

// prolonged asks for an account with a short life, prolongs that in time, and returns when it would
// have ended.
func (p *place) prolonged(t *testing.T, name string) time.Time {
	t.Helper()
	for life := 5; ; life *= 2 {
		p.ask(t, name, fmt.Sprintf(`{"rotation":{},"ttlSecondsAfterCreation":%d}`, life))
		_, err := p.onHub.Resource(asked).Namespace(p.cluster).Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"spec":{"ttlSecondsAfterCreation":86400}}`), metav1.PatchOptions{})
		ends := time.Now().Add(time.Duration(life) * time.Second)
		if life < 60 && apierrors.IsNotFound(err) {
			continue
		}
		require.NoError(t, err)
		return ends
	}
}

func TestWhatTheHubSays(t *testing.T) {
	t.Parallel()
	s := start(t)
	nowhere := &place{scene: s, cluster: "nowhere"}
	apply(t, s.onHub, object("v1", "Namespace", "", "nowhere"))
	t.Cleanup(func() {
		_ = s.onHub.Resource(namespaces).Delete(context.Background(), "nowhere", metav1.DeleteOptions{})
	})
	nowhere.ask(t, "web", `{"rotation":{}}`)
	nowhere.await(t, "web", says("Served", metav1.ConditionFalse, "NoManagedCluster"))

	p := s.join(t, "leaving")
	p.ask(t, "web", `{"rotation":{}}`)
	p.reported(t, "web")
	role, err := typed.Get[rbacv1.Role](t.Context(), s.onHub, roles, p.cluster, authenticationv1beta1.AgentRole)
	require.NoError(t, err)
	require.Equal(t, []string{"web"}, role.Rules[3].ResourceNames)
	p.patch(t, s.onHub, roles, reconcile.KeyOf(role), `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`)
	require.True(t, harness.Until(patience, func() bool {
		now, err := typed.Get[rbacv1.Role](t.Context(), s.onHub, roles, p.cluster, authenticationv1beta1.AgentRole)
		return err == nil && len(now.Rules) == 4
	}), "the rights are put right")

	p.stop()
	past := metav1.NewTime(time.Now().Add(-time.Minute)).UTC().Format(time.RFC3339)
	_, err = s.onHub.Resource(asked).Namespace(p.cluster).Patch(
		t.Context(), "web", "application/merge-patch+json", []byte(`{"status":{"expirationTimestamp":"`+past+`"}}`), metav1.PatchOptions{}, "status",
	)
	require.NoError(t, err)
	p.await(t, "web", says("TokenReported", metav1.ConditionFalse, "TokenExpired"))

	require.NoError(t, s.onHub.Resource(addOns).Namespace(p.cluster).Delete(t.Context(), authenticationv1beta1.AddOnName, metav1.DeleteOptions{}))
	p.await(t, "web", says("Served", metav1.ConditionFalse, "AddOnMissing"))
	require.True(t, harness.Until(patience, func() bool {
		_, err := s.onHub.Resource(roles).Namespace(p.cluster).Get(t.Context(), authenticationv1beta1.AgentRole, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}), "the rights go with the add-on")
	require.NotNil(t, p.secret(t, "web"), "the token stays")
}
