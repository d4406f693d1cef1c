// SPDX-License-Identifier: Apache-2.0

package serviceaccount_test

import (
	"context"
	"encoding/base64"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

const managed = "authentication.open-cluster-management.io/is-managed-serviceaccount"

func TestAnAccountFromItsRequestToItsEnd(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "whole")
	begun := time.Now()
	p.ask(t, "web", `{"rotation":{}}`)
	a, secret := p.reported(t, "web")
	t.Logf("measured: the token was reported after %s", time.Since(begun).Round(time.Millisecond))
	require.True(t, a.Spec.Rotation.Enabled)
	require.Equal(t, 8640*time.Hour, a.Spec.Rotation.Validity.Duration)
	require.True(t, says("SecretCreated", metav1.ConditionTrue, "SecretCreated")(a))
	require.Equal(t, "web", a.Status.TokenSecretRef.Name)
	require.WithinDuration(t, time.Now(), a.Status.TokenSecretRef.LastRefreshTimestamp.Time, patience)
	require.WithinDuration(t, a.Status.TokenSecretRef.LastRefreshTimestamp.Add(8640*time.Hour), a.Status.ExpirationTimestamp.Time, time.Minute)
	require.Nil(t, apimeta.FindStatusCondition(a.Status.Conditions, "Served"))
	old, err := p.onHub.Resource(asked.GroupResource().WithVersion("v1alpha1")).Namespace(p.cluster).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err, "the older version has the same content")
	require.Equal(t, map[string]any{"rotation": map[string]any{"enabled": true, "validity": "8640h0m0s"}}, old.Object["spec"])

	require.EqualValues(t, "Opaque", secret.Type)
	require.Len(t, secret.Data, 2)
	require.Equal(t, p.spoke.Config.CAData, secret.Data["ca.crt"])
	require.Equal(t, "true", secret.Labels[managed])
	require.Equal(t, []metav1.OwnerReference{
		{APIVersion: "authentication.open-cluster-management.io/v1beta1", Kind: "ManagedServiceAccount", Name: "web", UID: a.UID},
	}, secret.OwnerReferences)
	require.Equal(t, "true", p.account(t, "web").Labels[managed])
	require.True(t, apierrors.IsForbidden(p.login(t, secret)), "the cluster knows the bearer, who has no rights yet")

	require.NoError(t, p.onHub.Resource(asked).Namespace(p.cluster).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	require.True(t, harness.Until(patience, func() bool { return p.account(t, "web") == nil && p.secret(t, "web") == nil }))
	require.True(t, harness.Until(patience, func() bool { return apierrors.IsUnauthorized(p.login(t, secret)) }), "its tokens end with it")
}

func TestWhatIsBrokenIsMadeGood(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "broken")
	p.ask(t, "web", `{"rotation":{}}`)
	first, secret := p.reported(t, "web")
	key := reconcile.Key{Namespace: p.cluster, Name: "web"}

	p.patch(t, p.onHub, secrets, key, `{"metadata":{"labels":{"mine":"1"},"annotations":{"mine":"2"}},"data":{"token":"Z2FyYmFnZQ==","more":"eA=="}}`)
	now := p.renewed(t, "web", secret)
	require.Equal(t, []string{"1", "2"}, []string{now.Labels["mine"], now.Annotations["mine"]}, "labels and annotations of others stay")
	require.Len(t, now.Data, 2)

	forged := "e30." + base64.RawURLEncoding.EncodeToString([]byte(
		`{"sub":"system:serviceaccount:`+p.namespace+`:web","iat":1,"exp":99999999999,`+
			`"kubernetes.io":{"serviceaccount":{"uid":"`+string(p.account(t, "web").UID)+`"}}}`,
	)) + ".c2ln"
	p.patch(t, p.onHub, secrets, key, `{"data":{"token":"`+base64.StdEncoding.EncodeToString([]byte(forged))+`"}}`)
	require.True(t, harness.Until(patience, func() bool {
		s := p.secret(t, "web")
		return string(s.Data["token"]) != forged && apierrors.IsForbidden(p.login(t, s))
	}), "a forged token is not reported as a good one")

	p.patch(t, p.onHub, secrets, key, `{"metadata":{"labels":{"`+managed+`":null},"ownerReferences":null},"data":{"ca.crt":"eA=="}}`)
	require.True(t, harness.Until(patience, func() bool {
		a := p.await(t, "web", func(*authenticationv1beta1.ManagedServiceAccount) bool { return true })
		return says("SecretCreated", metav1.ConditionFalse, "SecretNameTaken")(a)
	}), "a Secret that says nothing of its origin is left alone")
	p.patch(t, p.onHub, secrets, key, `{"metadata":{"labels":{"`+managed+`":"true"}}}`)
	p.await(t, "web", says("SecretCreated", metav1.ConditionTrue, "SecretCreated"))
	require.Equal(t, p.spoke.Config.CAData, p.secret(t, "web").Data["ca.crt"])
	require.Len(t, p.secret(t, "web").OwnerReferences, 1)

	secret = p.secret(t, "web")
	require.NoError(t, p.onHub.Resource(secrets).Namespace(p.cluster).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	secret = p.renewed(t, "web", secret)
	before := p.account(t, "web")
	// Tokens tell the time in seconds.
	require.True(t, harness.Until(patience, func() bool { return time.Now().Unix() > first.Status.TokenSecretRef.LastRefreshTimestamp.Unix() }))
	require.NoError(t, p.onSpoke.Resource(accounts).Namespace(p.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	now = p.renewed(t, "web", secret)
	require.NotEqual(t, before.UID, p.account(t, "web").UID)
	require.True(t, harness.Until(patience, func() bool { return apierrors.IsForbidden(p.login(t, now)) }), "the cluster comes to know the new account")
	last := p.await(t, "web", func(a *authenticationv1beta1.ManagedServiceAccount) bool {
		return says("TokenReported", metav1.ConditionTrue, "TokenReported")(a) &&
			a.Status.TokenSecretRef.LastRefreshTimestamp.After(first.Status.TokenSecretRef.LastRefreshTimestamp.Time)
	})
	require.Equal(t, first.UID, last.UID)
}

// Somebody uses the token all the time while it is renewed three times.
func TestARenewalRefusesNobody(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "renewing")
	p.ask(t, "web", `{"rotation":{"validity":"10m"}}`)
	a, secret := p.reported(t, "web")
	require.WithinDuration(t, a.Status.TokenSecretRef.LastRefreshTimestamp.Add(10*time.Minute), a.Status.ExpirationTimestamp.Time, 10*time.Second)

	var mu sync.Mutex
	uses, refused := 0, []error{}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			err := p.login(t, p.secret(t, "web"))
			mu.Lock()
			if uses++; !apierrors.IsForbidden(err) {
				refused = append(refused, err)
			}
			mu.Unlock()
		}
	}()
	p.clock.SetTime(p.clock.Now().Add(7 * time.Minute))
	p.touch(t, "web", "early")
	for _, round := range []string{"one", "two", "three"} {
		require.Equal(t, secret.Data["token"], p.secret(t, "web").Data["token"], "nothing is renewed early")
		p.clock.SetTime(p.clock.Now().Add(9 * time.Minute))
		p.touch(t, "web", round)
		secret = p.renewed(t, "web", secret)
		p.await(t, "web", says("TokenReported", metav1.ConditionTrue, "TokenReported"))
	}
	cancel()
	<-ended
	require.Empty(t, refused)
	require.Greater(t, uses, 3)
	t.Logf("measured: the token was used %d times", uses)
}

func TestATokenStaysWhenTheClusterGrantsNone(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "refusing")
	p.ask(t, "web", `{"rotation":{"validity":"10m"}}`)
	a, secret := p.reported(t, "web")
	role := reconcile.Key{Namespace: p.namespace, Name: "open-cluster-management:managed-serviceaccount:addon-agent"}
	resource := reconcile.ResourceOf(p.template[1].GroupVersionKind())
	p.patch(t, p.onSpoke, resource, role, `{"rules":[{"apiGroups":[""],"resources":["serviceaccounts"],"verbs":["get","list","watch"]}]}`)
	// The end of the right takes a moment to count, and until then tokens are granted.
	p.clock.SetTime(p.clock.Now().Add(9 * time.Minute))
	refused := says("TokenReported", metav1.ConditionFalse, "TokenReportFailed")
	var failed *authenticationv1beta1.ManagedServiceAccount
	for round := 0; ; round++ {
		p.touch(t, "web", time.Now().String())
		now := p.await(t, "web", func(now *authenticationv1beta1.ManagedServiceAccount) bool {
			return refused(now) || now.Status.ExpirationTimestamp.After(a.Status.ExpirationTimestamp.Time)
		})
		if refused(now) {
			failed = now
			break
		}
		require.Less(t, round, 20)
		a, secret = now, p.secret(t, "web")
		p.clock.SetTime(p.clock.Now().Add(9 * time.Minute))
	}
	require.Contains(t, apimeta.FindStatusCondition(failed.Status.Conditions, "TokenReported").Message, "serviceaccounts/token")
	require.Equal(t, a.Status.ExpirationTimestamp, failed.Status.ExpirationTimestamp)
	require.Equal(t, secret.Data, p.secret(t, "web").Data)
	require.True(t, apierrors.IsForbidden(p.login(t, secret)), "the previous token still works")

	p.grant(t)
	p.renewed(t, "web", secret)
	p.await(t, "web", says("TokenReported", metav1.ConditionTrue, "TokenReported"))
}

func TestAccountsOfOthersYieldNoToken(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "foreign")
	foreign := object("v1", "ServiceAccount", p.namespace, "proxy")
	apply(t, p.onSpoke, foreign)
	uid := p.account(t, "proxy").UID
	p.ask(t, "proxy", `{"rotation":{}}`)
	a := p.await(t, "proxy", says("TokenReported", metav1.ConditionFalse, "TokenReportFailed"))
	require.Contains(t, apimeta.FindStatusCondition(a.Status.Conditions, "TokenReported").Message, "tokens-allowed=true")
	require.Nil(t, p.secret(t, "proxy"))

	p.patch(t, p.onSpoke, accounts, reconcile.Key{Namespace: p.namespace, Name: "proxy"},
		`{"metadata":{"annotations":{"authentication.open-cluster-management.io/tokens-allowed":"true"}}}`)
	_, secret := p.reported(t, "proxy")
	require.True(t, apierrors.IsForbidden(p.login(t, secret)))
	require.NoError(t, p.onHub.Resource(asked).Namespace(p.cluster).Delete(t.Context(), "proxy", metav1.DeleteOptions{}))
	// Another account comes and goes afterwards, so that the agent has seen the deletion.
	p.ask(t, "other", `{"rotation":{}}`)
	p.reported(t, "other")
	require.NoError(t, p.onHub.Resource(asked).Namespace(p.cluster).Delete(t.Context(), "other", metav1.DeleteOptions{}))
	require.True(t, harness.Until(patience, func() bool { return p.account(t, "other") == nil }))
	require.Equal(t, uid, p.account(t, "proxy").UID, "an account of others stays")
}

func TestAnAgentThatWasAway(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "away")
	for _, name := range []string{"stays", "goes"} {
		p.ask(t, name, `{"rotation":{}}`)
		p.reported(t, name)
	}
	before, secret := p.reported(t, "stays")
	p.stop()
	require.NoError(t, p.onHub.Resource(asked).Namespace(p.cluster).Delete(t.Context(), "goes", metav1.DeleteOptions{}))
	require.NotNil(t, p.account(t, "goes"))
	p.start(t, p.hub.Config.Host)
	require.True(t, harness.Until(patience, func() bool { return p.account(t, "goes") == nil }), "it goes when the agent is back")

	// A new one is served after those that were there.
	p.ask(t, "new", `{"rotation":{}}`)
	p.reported(t, "new")
	after, again := p.reported(t, "stays")
	require.Equal(t, secret.ResourceVersion, again.ResourceVersion, "a valid token is not written again")
	require.Equal(t, before.ResourceVersion, after.ResourceVersion)
}

// Two hubs manage the same cluster, and their agents are in the same namespace.
func TestTwoHubsWithTheSameName(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "first")
	p.ask(t, "web", `{"rotation":{}}`)
	_, secret := p.reported(t, "web")
	other := p.scene.join(t, "second")
	other.stop()
	other.namespace = p.namespace
	other.start(t, "https://another.example.com")
	other.ask(t, "web", `{"rotation":{}}`)
	a := other.await(t, "web", says("TokenReported", metav1.ConditionFalse, "TokenReportFailed"))
	require.Contains(t, apimeta.FindStatusCondition(a.Status.Conditions, "TokenReported").Message, "was created for another hub")
	require.Nil(t, other.secret(t, "web"))
	require.NoError(t, other.onHub.Resource(asked).Namespace(other.cluster).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	other.ask(t, "own", `{"rotation":{}}`)
	other.reported(t, "own")
	require.NotNil(t, p.account(t, "web"), "the account of the first hub stays")
	require.True(t, apierrors.IsForbidden(p.login(t, secret)))
}

// The agent's certificate is stolen: what it may do with Secrets of the hub.
func TestAHostileAgent(t *testing.T) {
	t.Parallel()
	s := start(t)
	p, victim := s.join(t, "hostile"), s.join(t, "victim")
	victim.ask(t, "web", `{"rotation":{}}`)
	_, theirs := victim.reported(t, "web")
	p.ask(t, "mine", `{"rotation":{}}`)
	p.reported(t, "mine")
	pull := object("v1", "Secret", p.cluster, "pull")
	apply(t, s.onHub, pull)
	client, err := dynamic.NewForConfig(s.identity(p.cluster))
	require.NoError(t, err)

	for name, at := range map[string]reconcile.Key{
		"a Secret of another cluster": {Namespace: victim.cluster, Name: "web"}, "a Secret of its cluster that no account has": {Namespace: p.cluster, Name: "pull"},
		"a Secret of the system": {Namespace: "kube-system", Name: "pull"},
	} {
		api := client.Resource(secrets).Namespace(at.Namespace)
		_, err := api.Get(t.Context(), at.Name, metav1.GetOptions{})
		require.True(t, apierrors.IsForbidden(err), "reads %s: %v", name, err)
		_, err = api.Patch(t.Context(), at.Name, "application/merge-patch+json", []byte(`{"data":{"token":"eA=="}}`), metav1.PatchOptions{})
		require.True(t, apierrors.IsForbidden(err), "writes %s: %v", name, err)
		require.True(t, apierrors.IsForbidden(api.Delete(t.Context(), at.Name, metav1.DeleteOptions{})), "deletes %s", name)
		_, err = api.List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "lists %s: %v", name, err)
	}
	// Admission of a new policy takes a moment to count.
	refused := func(what, name, kind string) {
		t.Helper()
		u := object("v1", "Secret", p.cluster, name)
		u.Object["type"] = kind
		u.SetAnnotations(map[string]string{"kubernetes.io/service-account.name": "default"})
		if name == "" {
			u.SetGenerateName("any-")
		}
		var err error
		require.True(t, harness.Until(patience, func() bool {
			_, err = client.Resource(secrets).Namespace(p.cluster).Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
		}), "%s: %v", what, &err)
		require.ErrorContains(t, err, "managed-serviceaccount-secrets.open-cluster-management.io")
	}
	refused("creates a Secret that no account has", "new", "Opaque")
	refused("creates a Secret with any name", "", "Opaque")
	require.NoError(t, s.onHub.Resource(secrets).Namespace(p.cluster).Delete(t.Context(), "pull", metav1.DeleteOptions{}))
	p.ask(t, "typed", `{"rotation":{}}`)
	p.reported(t, "typed")
	refused("creates a Secret from which a token is made", "typed", "kubernetes.io/service-account-token")

	_, err = client.Resource(asked).Namespace(p.cluster).Patch(
		t.Context(), "mine", "application/merge-patch+json", []byte(`{"spec":{"rotation":{"validity":"1h"}}}`), metav1.PatchOptions{},
	)
	require.True(t, apierrors.IsForbidden(err), "changes what is asked for: %v", err)
	_, err = client.Resource(asked).Namespace(victim.cluster).Patch(
		t.Context(), "web", "application/merge-patch+json", []byte(`{"status":null}`), metav1.PatchOptions{}, "status",
	)
	require.True(t, apierrors.IsForbidden(err), "reports for another cluster: %v", err)
	require.Equal(t, theirs.ResourceVersion, victim.secret(t, "web").ResourceVersion)
}
