// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// token is a Secret as the agent writes it.
func token(change ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: "web", UID: "s", Labels: map[string]string{"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "authentication.open-cluster-management.io/v1beta1", Kind: "ManagedServiceAccount", Name: "web", UID: "a",
			}},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"token": []byte("a.b.c"), "ca.crt": []byte("authority"), "more": []byte("x")},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// shared is a state in which the token of one account is to be copied.
func shared(change ...func(*state)) state {
	from, what := sourceOf(token())
	s := state{
		Key:     reconcile.Key{Namespace: "shop", Name: "c1"},
		Profile: "p", Accounts: []account{{Name: "web", Source: &from, Content: &what}},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

// copied adds the copy as the loop would have written it.
func copied(change ...func(*corev1.Secret)) func(*state) {
	return func(s *state) {
		live := decide(shared()).Writes[0].(reconcile.Create).Object.(*corev1.Secret)
		live.UID, live.ResourceVersion = "r", "7"
		for _, c := range change {
			c(live)
		}
		r := replicaOf(live)
		for i := range s.Accounts {
			s.Accounts[i].Copy = &r
		}
		if r.Profile == s.Key.Name {
			s.Copies = append(s.Copies, r)
		}
	}
}

func TestACopyHoldsTheTwoKeysAndBelongsToItsProfile(t *testing.T) {
	plan := decide(shared())
	require.Empty(t, plan.Events)
	require.Len(t, plan.Writes, 1)
	made := plan.Writes[0].(reconcile.Create)
	require.False(t, made.Lenient, "a Secret of somebody else is not taken for it")
	controls := true
	require.Equal(t, &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "c1-web", Labels: map[string]string{"authentication.open-cluster-management.io/synced-from": "c1-web"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ClusterProfile", Name: "c1", UID: "p", Controller: &controls,
			}},
		},
		Type: "Opaque", Data: map[string][]byte{"token": []byte("a.b.c"), "ca.crt": []byte("authority")},
	}, made.Object)
}

func TestWhatIsDoneAboutACopy(t *testing.T) {
	const label = "authentication.open-cluster-management.io/synced-from"
	none := func(s *state) { s.Accounts = nil }
	foreign := func(s *state) { s.Copies = nil }
	for name, tc := range map[string]struct {
		change                   []func(*state)
		creates, renews, removes bool
		said                     string
	}{
		"there is none":          {nil, true, false, false, ""},
		"it is as it should be":  {[]func(*state){copied()}, false, false, false, ""},
		"the token is another":   {[]func(*state){copied(func(s *corev1.Secret) { s.Data["token"] = []byte("d.e.f") })}, false, true, false, ""},
		"the CA is another":      {[]func(*state){copied(func(s *corev1.Secret) { s.Data["ca.crt"] = nil })}, false, true, false, ""},
		"somebody added a key":   {[]func(*state){copied(func(s *corev1.Secret) { s.Data["x"] = nil })}, false, true, false, ""},
		"there is no profile":    {[]func(*state){func(s *state) { s.Profile = "" }}, false, false, false, ""},
		"the profile went":       {[]func(*state){copied(), func(s *state) { s.Profile = "" }}, false, false, true, ""},
		"the account went":       {[]func(*state){copied(), none}, false, false, true, ""},
		"there is no token":      {[]func(*state){func(s *state) { s.Accounts[0].Source = nil }}, false, false, false, ""},
		"the token went":         {[]func(*state){copied(), func(s *state) { s.Accounts[0].Source = nil }}, false, false, false, ""},
		"the token was not read": {[]func(*state){func(s *state) { s.Accounts[0].Content = nil }}, false, false, false, ""},
		"of an earlier profile, which takes it along": {
			[]func(*state){copied(func(s *corev1.Secret) { s.OwnerReferences[0].UID = "q" })}, false, false, false, "",
		},
		"of somebody else": {[]func(*state){copied(func(s *corev1.Secret) { s.OwnerReferences = nil }), foreign}, false, false, false, "is no copy of it"},
		"of another profile": {
			[]func(*state){copied(func(s *corev1.Secret) { s.OwnerReferences[0].Name = "c" })}, false, false, false, "is no copy of it",
		},
		"without its label":       {[]func(*state){copied(func(s *corev1.Secret) { delete(s.Labels, label) })}, false, false, false, "is no copy of it"},
		"without it, and account": {[]func(*state){copied(func(s *corev1.Secret) { delete(s.Labels, label) }), none}, false, false, false, ""},
		"of another type":         {[]func(*state){copied(func(s *corev1.Secret) { s.Type = "x" }), none}, false, false, false, ""},
		"in the namespace of a cluster": {
			[]func(*state){func(s *state) { s.InCluster = true }}, false, false, false, "namespace shop is that of a cluster",
		},
		"in what became one": {[]func(*state){copied(), func(s *state) { s.InCluster = true }}, false, false, true, "namespace shop is that of a cluster"},
		"a long name": {
			[]func(*state){func(s *state) { s.Accounts[0].Name = strings.Repeat("a", 61) }}, false, false, false, "longer than 63 characters",
		},
		"a token that is none": {
			[]func(*state){copied(), func(s *state) { s.Accounts[0].Source.Fault = "it holds no token" }}, false, false, false, "Secret c1/web: it holds no token",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(shared(tc.change...))
			renews, removes := reconcile.Of[reconcile.Patch](plan.Writes), reconcile.Of[reconcile.Remove](plan.Writes)
			require.Equal(t, []bool{tc.creates, tc.renews, tc.removes},
				[]bool{len(reconcile.Of[reconcile.Create](plan.Writes)) == 1, len(renews) == 1, len(removes) == 1})
			if tc.renews || tc.removes {
				at := reconcile.TargetOf(plan.Writes[0])
				require.Equal(t, []string{"r", "7"}, []string{string(at.UID), at.Version}, "what was read is what is written to")
			}
			require.Equal(t, tc.said != "", len(plan.Events) == 1)
			if tc.said != "" {
				require.Contains(t, plan.Events[0].Message, tc.said)
				require.Positive(t, plan.RequeueAfter, "a Secret of somebody else may go unseen")
			}
		})
	}
	body := decide(shared(copied(func(s *corev1.Secret) { s.Data["x"] = nil }))).Writes[0].(reconcile.Patch).Body
	require.Equal(t, map[string]any{"data": map[string]any{"token": []byte("a.b.c"), "ca.crt": []byte("authority"), "x": nil}}, body)
}

func TestWhichSecretsAreTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*corev1.Secret)
		account string
		fault   string
	}{
		"as the agent writes it": {func(*corev1.Secret) {}, "a", ""},
		"without an authority":   {func(s *corev1.Secret) { delete(s.Data, "ca.crt") }, "a", ""},
		"without the label":      {func(s *corev1.Secret) { s.Labels = nil }, "", ""},
		"without an owner":       {func(s *corev1.Secret) { s.OwnerReferences = nil }, "", ""},
		"of another kind":        {func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "Secret" }, "", ""},
		"of another group":       {func(s *corev1.Secret) { s.OwnerReferences[0].APIVersion = "v1beta1" }, "", ""},
		"of another account":     {func(s *corev1.Secret) { s.OwnerReferences[0].Name = "other" }, "", ""},
		"of a ServiceAccount of the hub": {
			func(s *corev1.Secret) { s.Type = corev1.SecretTypeServiceAccountToken }, "", "",
		},
		"empty":              {func(s *corev1.Secret) { s.Data = nil }, "a", "it holds no token"},
		"a huge token":       {func(s *corev1.Secret) { s.Data["token"] = make([]byte, maxToken+1) }, "a", "its token has more than 16384 bytes"},
		"a huge authority":   {func(s *corev1.Secret) { s.Data["ca.crt"] = make([]byte, maxCA+1) }, "a", "its ca.crt has more than 131072 bytes"},
		"a header in a line": {func(s *corev1.Secret) { s.Data["token"] = []byte("a\nb: c") }, "a", "its token has characters that no token has"},
	} {
		t.Run(name, func(t *testing.T) {
			got, what := sourceOf(token(tc.change))
			require.Equal(t, []string{tc.account, tc.fault}, []string{string(got.Account), got.Fault})
			require.Equal(t, tc.fault == "", len(what.Token) > 0)
			require.NotContains(t, got.Fault, "a.b.c")
		})
	}
	one, _ := contentOf(map[string][]byte{"token": []byte("ab"), "ca.crt": []byte("c")})
	two, _ := contentOf(map[string][]byte{"token": []byte("a"), "ca.crt": []byte("bc")})
	require.NotEqual(t, one.digest(), two.digest())
}

func TestWhichProfilesAreOurs(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"as the hub makes it": {func(*unstructured.Unstructured) {}, true},
		"another manager": {func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "x", "spec", "clusterManager", "name")
		}, false},
		"another name":  {func(u *unstructured.Unstructured) { u.SetName("c2") }, false},
		"no cluster":    {func(u *unstructured.Unstructured) { u.SetLabels(nil) }, false},
		"being deleted": {func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(new(metav1.Unix(1, 0))) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": "open-cluster-management"}}}}
			u.SetName("c1")
			u.SetUID("p")
			u.SetLabels(map[string]string{"open-cluster-management.io/cluster-name": "c1"})
			tc.change(u)
			uid, ok := keepProfile(u)
			require.EqualValues(t, "p", uid)
			require.Equal(t, tc.want, ok)
		})
	}
}
