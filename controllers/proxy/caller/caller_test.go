// SPDX-License-Identifier: Apache-2.0

package caller_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/caller"
)

func TestWhoAUserOfTheHubIsOnAManagedCluster(t *testing.T) {
	const authenticated = "system:authenticated"
	for name, tc := range map[string]struct{ on, there caller.Caller }{
		"a person": {
			caller.Caller{User: "ada", UID: "7", Groups: []string{"devs", authenticated}, Extra: map[string][]string{"example.org/Team": {"a", "b"}}},
			caller.Caller{User: "ada", UID: "7", Groups: []string{"devs", authenticated}, Extra: map[string][]string{"example.org/Team": {"a", "b"}}},
		},
		"a ServiceAccount": {
			caller.Caller{User: "system:serviceaccount:ns:a", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ns", authenticated}},
			caller.Caller{
				User:   "cluster:hub:system:serviceaccount:ns:a",
				Groups: []string{"cluster:hub:system:serviceaccounts", "cluster:hub:system:serviceaccounts:ns", authenticated},
			},
		},
		"who has the name of another": {
			caller.Caller{User: "cluster:hub:system:node:n1", Groups: []string{"cluster:hub:system:nodes"}},
			caller.Caller{User: "cluster:hub:cluster:hub:system:node:n1", Groups: []string{"cluster:hub:cluster:hub:system:nodes"}},
		},
		"an administrator": {
			caller.Caller{User: "root", Groups: []string{"system:masters", authenticated}},
			caller.Caller{User: "root", Groups: []string{authenticated}},
		},
		"a node": {
			caller.Caller{User: "system:node:n1", Groups: []string{"system:nodes"}},
			caller.Caller{User: "cluster:hub:system:node:n1", Groups: []string{"cluster:hub:system:nodes"}},
		},
		"what the hub says of its credential": {
			caller.Caller{User: "ada", Extra: map[string][]string{
				"authentication.kubernetes.io/node-name": {"n1"}, "Authentication.Kubernetes.IO/credential-id": {"x"}, "x.k8s.io/y": {"z"}, "k8s.io": {"z"},
			}},
			caller.Caller{User: "ada"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := caller.Carried(tc.on)
			require.NoError(t, err)
			if len(got.Extra) == 0 {
				got.Extra = nil
			}
			require.Equal(t, tc.there, got)
			head := http.Header{}
			require.NoError(t, got.Set(head))
			read, err := caller.Read(head)
			require.NoError(t, err)
			require.Equal(t, tc.there, read)
		})
	}
}

func TestNobodyIsCarriedWithoutAName(t *testing.T) {
	for name, c := range map[string]caller.Caller{
		"no user":         {},
		"the anonymous":   {User: "system:anonymous"},
		"an anonymous as": {User: "ada", Groups: []string{"system:unauthenticated"}},
	} {
		_, err := caller.Carried(c)
		require.ErrorIs(t, err, caller.ErrAnonymous, name)
	}
}

func TestTheAgentRefusesWhatNoHubSends(t *testing.T) {
	sent := func(text string) http.Header {
		return http.Header{caller.Header: {base64.StdEncoding.EncodeToString([]byte(text))}}
	}
	for name, head := range map[string]http.Header{
		"no identity":            {},
		"two of them":            {caller.Header: append(sent(`{"user":"ada"}`)[caller.Header], sent(`{"user":"eve"}`)[caller.Header]...)},
		"no base64":              {caller.Header: {"{}"}},
		"no JSON":                sent("ada"),
		"no user":                sent(`{"groups":["devs"]}`),
		"a system user":          sent(`{"user":"system:admin"}`),
		"masters":                sent(`{"user":"ada","groups":["system:masters"]}`),
		"another system":         sent(`{"user":"ada","groups":["system:nodes"]}`),
		"blanks around":          sent(`{"user":" system:admin"}`),
		"blanks in a group":      sent(`{"user":"ada","groups":["system:masters "]}`),
		"blank before":           sent(`{"user":"ada","groups":[" system:masters"]}`),
		"a line break":           sent(`{"user":"ada\r\nImpersonate-Group: system:masters"}`),
		"in a UID":               sent(`{"user":"ada","uid":"1\n2"}`),
		"in a value":             sent(`{"user":"ada","extra":{"a":["1\n2"]}}`),
		"in a key":               sent(`{"user":"ada","extra":{"a\n":["1"]}}`),
		"an empty group":         sent(`{"user":"ada","groups":[""]}`),
		"a reserved key":         sent(`{"user":"ada","extra":{"authentication.kubernetes.io/pod-name":["p"]}}`),
		"a long name":            sent(`{"user":"` + strings.Repeat("a", 1025) + `"}`),
		"many groups":            sent(`{"user":"ada","groups":["a"` + strings.Repeat(`,"a"`, 1024) + `]}`),
		"an account and a user":  sent(`{"account":"robot","user":"ada"}`),
		"an account in groups":   sent(`{"account":"robot","groups":["devs"]}`),
		"an account with a UID":  sent(`{"account":"robot","uid":"1"}`),
		"an account with extra":  sent(`{"account":"robot","extra":{"a":["1"]}}`),
		"an account elsewhere":   sent(`{"account":"kube-system:robot"}`),
		"an account by its path": sent(`{"account":"../robot"}`),
		"an account in masters":  sent(`{"account":"robot\r\nImpersonate-Group: system:masters"}`),
		"its whole user name":    sent(`{"user":"system:serviceaccount:open-cluster-management-agent-addon:robot"}`),
		"more than a header":     {caller.Header: {strings.Repeat("A", 64<<10+4)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := caller.Read(head)
			require.ErrorIs(t, err, caller.ErrRefused)
		})
	}
}

// TestAnAccountIsCarriedAloneAndAsNoUser: an agent that knows no accounts must find nobody in it, rather
// than the user whose name is that of the account.
func TestAnAccountIsCarriedAloneAndAsNoUser(t *testing.T) {
	c, err := caller.OfAccount("robot.v2")
	require.NoError(t, err)
	head := http.Header{}
	require.NoError(t, c.Set(head))
	read, err := caller.Read(head)
	require.NoError(t, err)
	require.Equal(t, caller.Caller{Account: "robot.v2"}, read)
	wire, err := base64.StdEncoding.DecodeString(head.Get(caller.Header))
	require.NoError(t, err)
	require.JSONEq(t, `{"account":"robot.v2","user":""}`, string(wire))
	for _, name := range []string{"", "a/b", "a:b", "A", "..", "system:serviceaccount:a:b", strings.Repeat("a", 254)} {
		_, err := caller.OfAccount(name)
		require.ErrorIs(t, err, caller.ErrRefused, name)
	}
}

func TestAnIdentityThatIsTooLongIsNotSent(t *testing.T) {
	c := caller.Caller{User: "ada"}
	for range 1000 {
		c.Groups = append(c.Groups, strings.Repeat("g", 100))
	}
	require.ErrorIs(t, c.Set(http.Header{}), caller.ErrRefused)
}

func TestImpersonationKeepsUpperCaseAndCharacters(t *testing.T) {
	head := http.Header{}
	caller.Caller{User: "ada", UID: "7", Groups: []string{"a", "b"}, Extra: map[string][]string{"example.org/Team é": {"x", "y"}}}.Impersonate(head)
	require.Equal(t, []string{"a", "b"}, head["Impersonate-Group"])
	require.Equal(t, "ada", head.Get("Impersonate-User"))
	require.Equal(t, "7", head.Get("Impersonate-Uid"))
	require.Equal(t, []string{"x", "y"}, head.Values("Impersonate-Extra-example.org%2f%54eam%20%c3%a9"))
}
