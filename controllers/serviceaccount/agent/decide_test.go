// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// token returns a token that was issued at noon, without a signature.
func token(subject string, account types.UID, life time.Duration) string {
	payload := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d,"kubernetes.io":{"serviceaccount":{"name":"a","uid":%q}}}`,
		subject, noon.Unix(), noon.Add(life).Unix(), account)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

// secret returns a complete Secret with a token.
func secret(text string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "s", ResourceVersion: "7", Labels: map[string]string{authenticationv1beta1.LabelManaged: "true"},
			OwnerReferences: []metav1.OwnerReference{owner(theAsked())},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"token": []byte(text), "ca.crt": []byte("ca")},
	}
}

func theAsked() *authenticationv1beta1.ManagedServiceAccount {
	a := &authenticationv1beta1.ManagedServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: authenticationv1beta1.GroupVersion.String(), Kind: kindName},
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "m", Generation: 3, CreationTimestamp: metav1.NewTime(noon)},
	}
	a.Spec.Rotation = authenticationv1beta1.ManagedServiceAccountRotation{Enabled: true, Validity: metav1.Duration{Duration: 8640 * time.Hour}}
	return a
}

// served is the state in which everything is as it should be, one minute past noon.
func served(change ...func(*State)) State {
	s := State{
		Now: noon.Add(time.Minute), Name: "a", Namespace: "agents", Hub: "h", CA: []byte("ca"), Asked: theAsked(),
		Account: &Account{UID: "u", Created: true, Hub: "h"}, Known: true, Verdict: Accepted, Fresh: true,
		Secret: secretOf(secret(token("system:serviceaccount:agents:a", "u", time.Hour))),
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestWhatIsDoneNext(t *testing.T) {
	holding := func(text string) func(*State) { return func(s *State) { s.Secret = secretOf(secret(text)) } }
	for name, tc := range map[string]struct {
		change func(*State)
		step   Step
		why    string
	}{
		"everything is as it should be":    {func(*State) {}, Done, ""},
		"nothing is there":                 {func(s *State) { s.Account, s.Secret = nil, nil }, Create, ""},
		"an account without a Secret":      {func(s *State) { s.Secret = nil }, Request, "there is no Secret"},
		"the same, as a cache says":        {func(s *State) { s.Secret, s.Fresh = nil, false }, Read, "there is no Secret"},
		"a token that was not reviewed":    {func(s *State) { s.Verdict = Unreviewed }, Review, ""},
		"a token that the cluster refuses": {func(s *State) { s.Verdict = Refused }, Request, "the cluster refuses the token"},
		"garbage":                          {holding("garbage"), Request, "the Secret holds no token"},
		"garbage in three parts":           {holding("a.b.c"), Request, "the Secret holds no token"},
		"a token of another namespace": {
			holding(token("system:serviceaccount:before:a", "u", time.Hour)), Request, "the token is that of another account",
		},
		"a token of an account that was deleted":   {holding(token("system:serviceaccount:agents:a", "v", time.Hour)), Request, "the account was created again"},
		"an account that was deleted":              {func(s *State) { s.Account = nil }, Create, ""},
		"another authority":                        {func(s *State) { s.CA = []byte("next") }, Repair, ""},
		"another key":                              {func(s *State) { s.Secret.More = []string{"x"} }, Repair, ""},
		"no label":                                 {func(s *State) { s.Secret.Labelled = false }, Repair, ""},
		"another owner":                            {func(s *State) { s.Secret.Owners[0].UID = "earlier" }, Repair, ""},
		"a Secret of others":                       {func(s *State) { s.Secret.Labelled, s.Secret.Owners = false, nil }, Done, ""},
		"a Secret of another type":                 {func(s *State) { s.Secret.Opaque = false }, Done, ""},
		"an account of others":                     {func(s *State) { s.Account, s.Secret = &Account{UID: "u"}, nil }, Done, ""},
		"an account of others that consents":       {func(s *State) { s.Account, s.Secret = &Account{UID: "u", Allowed: true}, nil }, Request, "there is no Secret"},
		"an account of another hub":                {func(s *State) { s.Account.Hub, s.Secret = "other", nil }, Done, ""},
		"an account of the hub's address before":   {func(s *State) { s.Account.Hub = "before" }, Done, ""},
		"an account that an earlier agent created": {func(s *State) { s.Account.Hub, s.Secret = "", nil }, Request, "there is no Secret"},
		"a hub that has not answered":              {func(s *State) { s.Known = false }, Done, ""},
		"nobody asks any more":                     {func(s *State) { s.Asked = nil }, Remove, ""},
		"it is being deleted":                      {func(s *State) { s.Asked.DeletionTimestamp = &metav1.Time{Time: noon} }, Remove, ""},
		"nobody asks, an account of others":        {func(s *State) { s.Asked, s.Account = nil, &Account{UID: "u", Allowed: true} }, Done, ""},
		"nobody asks, an account of another hub":   {func(s *State) { s.Asked, s.Account.Hub = nil, "other" }, Done, ""},
		"nobody asks, and nothing is there":        {func(s *State) { s.Asked, s.Account = nil, nil }, Done, ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(served(tc.change))
			require.Equal(t, tc.step, plan.Step)
			require.Equal(t, tc.why, plan.Why)
		})
	}
}

// A token is renewed after four fifths of the life that was granted, whatever was asked for.
func TestWhenTokensAreRenewed(t *testing.T) {
	for name, tc := range map[string]struct {
		life, at, ahead time.Duration
		step            Step
		after           time.Duration
	}{
		"at first":                           {time.Hour, 0, 0, Done, 48 * time.Minute},
		"shortly before":                     {time.Hour, 48*time.Minute - time.Second, 0, Done, time.Second},
		"in time":                            {time.Hour, 48 * time.Minute, 0, Request, 0},
		"long after its end":                 {time.Hour, 48 * time.Hour, 0, Request, 0},
		"a year, for which nobody waits":     {8640 * time.Hour, 0, 0, Done, longest},
		"a year, in time":                    {8640 * time.Hour, 6912 * time.Hour, 0, Request, 0},
		"more than was asked for":            {20000 * time.Hour, 8640 * time.Hour, 0, Done, longest},
		"a day instead of a year":            {24 * time.Hour, 19*time.Hour + 12*time.Minute, 0, Request, 0},
		"a minute is no loop":                {time.Minute, 47 * time.Second, 0, Done, time.Second},
		"five seconds are kept to their end": {5 * time.Second, 4 * time.Second, 0, Done, time.Second},
		"the clock is ten minutes late":      {time.Hour, 38 * time.Minute, 10 * time.Minute, Request, 0},
		"the clock is ten minutes early":     {time.Hour, 50 * time.Minute, -10 * time.Minute, Done, 8 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(served(func(s *State) {
				s.Secret = secretOf(secret(token(s.subject(), "u", tc.life)))
				s.Now, s.Ahead = noon.Add(tc.at), tc.ahead
			}))
			require.Equal(t, tc.step, plan.Step)
			require.Equal(t, tc.after, plan.RequeueAfter)
		})
	}
}

func TestWhatIsReported(t *testing.T) {
	plan := Decide(served(func(s *State) { s.Asked.Spec.Rotation.Enabled = false }))
	status := plan.Object.Status
	require.Equal(t, noon.Add(time.Hour).Unix(), status.ExpirationTimestamp.Unix())
	require.Equal(t, "a", status.TokenSecretRef.Name)
	require.Equal(t, noon.Unix(), status.TokenSecretRef.LastRefreshTimestamp.Unix())
	for kind, reason := range map[string]string{"SecretCreated": "SecretCreated", "TokenReported": "TokenReported"} {
		c := apimeta.FindStatusCondition(status.Conditions, kind)
		require.Equal(t, metav1.ConditionTrue, c.Status)
		require.Equal(t, reason, c.Reason)
		require.EqualValues(t, 3, c.ObservedGeneration)
	}
	require.Contains(t, apimeta.FindStatusCondition(status.Conditions, "TokenReported").Message, "spec.rotation.enabled: false has no effect")

	again := served(func(s *State) { s.Asked = plan.Object; s.Now = noon.Add(10 * time.Minute) })
	require.Equal(t, status, Decide(again).Object.Status, "a second pass has nothing new to say")
}

func TestWhatKeepsATokenFromBeingRequested(t *testing.T) {
	for want, change := range map[string]func(*State){
		"spec.rotation.validity: is 5m0s; use from 10m0s": func(s *State) { s.Asked.Spec.Rotation.Validity.Duration = 5 * time.Minute },
		"spec.rotation.validity: is -1s":                  func(s *State) { s.Asked.Spec.Rotation.Validity.Duration = -time.Second },
		"delete the Secret, or choose another name":       func(s *State) { s.Secret.Labelled, s.Secret.Owners = false, nil },
		"kubectl annotate serviceaccount -n agents a authentication.open-cluster-management.io/tokens-allowed=true": func(s *State) {
			s.Account = &Account{UID: "u"}
			s.Secret = nil
		},
		"was created for another hub": func(s *State) { s.Account.Hub, s.Secret = "other", nil },
		"reading the Secret on the hub: it is forbidden": func(s *State) {
			s.Known, s.Unread, s.Now = false, errors.New("it is forbidden"), noon.Add(time.Minute)
		},
	} {
		before := served().reported()
		plan := Decide(served(change, func(s *State) { s.Asked.Status = before.Status }))
		c := apimeta.FindStatusCondition(plan.Object.Status.Conditions, "TokenReported")
		require.Equal(t, metav1.ConditionFalse, c.Status)
		require.Equal(t, "TokenReportFailed", c.Reason)
		require.Contains(t, c.Message, want)
		require.Equal(t, before.Status.ExpirationTimestamp, plan.Object.Status.ExpirationTimestamp, "the previous token stays")
		require.Equal(t, strings.Contains(want, "delete the Secret"), apimeta.IsStatusConditionFalse(plan.Object.Status.Conditions, "SecretCreated"))
	}
}

// A role that was written a moment ago is no failure yet.
func TestARoleMayTakeAMomentToCount(t *testing.T) {
	plan := Decide(served(func(s *State) {
		s.Known, s.Unread, s.Now = false, errors.New("it is forbidden"), noon.Add(4*time.Second)
	}))
	require.Nil(t, plan.Object)
	require.Equal(t, 6*time.Second, plan.RequeueAfter)
}

func TestTokensThatCannotBeRead(t *testing.T) {
	encode := func(payload string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
	}
	for name, text := range map[string]string{
		"nothing": "", "two parts": "a.b", "no base64": "a.!.c", "no JSON": encode("x"), "no life": encode(`{"sub":"s"}`),
		"it ends before it begins": encode(`{"iat":20,"exp":10}`), "a time that no date has": encode(`{"iat":1,"exp":1e300}`),
		"a negative time": encode(`{"iat":-5,"exp":10}`), "too long": encode(`{"iat":1,"exp":2,"x":"` + strings.Repeat("x", maxToken) + `"}`),
	} {
		_, ok := parse(text)
		require.False(t, ok, name)
	}
	got, ok := parse(encode(`{"sub":"s","iat":10,"exp":20.5}`))
	require.True(t, ok)
	require.Equal(t, Token{Subject: "s", Issued: time.Unix(10, 0), Expires: time.Unix(20, 0)}, got)
}

func TestWhatIsWrittenToASecret(t *testing.T) {
	s := served(func(s *State) { s.Secret.More = []string{"kubeconfig"} })
	content := s.content("text")
	require.Equal(t, map[string]any{"token": "dGV4dA==", "ca.crt": "Y2E=", "kubeconfig": nil}, content["data"])
	require.Equal(t, "Opaque", content["type"])
	require.Equal(t, map[string]any{
		"uid": "s", "resourceVersion": "7", "labels": map[string]any{"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"},
		"ownerReferences": []any{map[string]any{
			"apiVersion": "authentication.open-cluster-management.io/v1beta1", "kind": "ManagedServiceAccount", "name": "a", "uid": "m",
		}},
	}, content["metadata"])
	s.Secret = nil
	require.NotContains(t, s.content("text")["metadata"], "uid")
}
