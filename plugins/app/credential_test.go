// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// tokensBesideProfiles are copies as the hub makes them, and Secrets that are none.
const tokensBesideProfiles = `
apiVersion: v1
kind: Secret
metadata:
  namespace: readers
  name: c1-web
  ownerReferences: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, name: c1, uid: p, controller: true}]
data: {token: YS5iLmM=}
---
apiVersion: v1
kind: Secret
metadata:
  namespace: default
  name: c1-web
  ownerReferences: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, name: c1, uid: p, controller: true}]
data: {token: ZC5lLmY=}
---
apiVersion: v1
kind: Secret
metadata:
  namespace: readers
  name: c1-a-b
  ownerReferences: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, name: c1, uid: p, controller: true}]
data: {token: c2VjcmV0}
---
apiVersion: v1
kind: Secret
metadata:
  namespace: readers
  name: c1-bad
  ownerReferences: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, name: c1, uid: p, controller: true}]
data: {token: c2VjcmV0IG9mIG5vYm9keQ==}
`

// asks returns what a client says in the environment about a cluster.
func asks(config string) string {
	return `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false,"cluster":{"server":"https://c1","config":` +
		config + `}}}`
}

func newCredentialScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, hub: apitest.New(t, created, tokensBesideProfiles), spoke: apitest.New(t, created), env: map[string]string{"LANG": "C.UTF-8"}}
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub, "spoke": s.spoke}))
	t.Setenv("HOME", t.TempDir())
	s.env["KUBERNETES_EXEC_INFO"] = asks(`{"clusterName":"c1"}`)
	return s
}

func TestAClientGetsTheTokenAndNothingElse(t *testing.T) {
	for name, tc := range map[string]struct{ words, namespace, token string }{
		"-n":                            {"-n readers", "", "a.b.c"},
		"-n before the environment":     {"-n readers", "default", "a.b.c"},
		"the environment":               {"", "readers", "a.b.c"},
		"the context, which names none": {"", "", "d.e.f"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCredentialScene(t)
			s.env["NAMESPACE"] = tc.namespace
			for _, command := range []string{"credential --managed-serviceaccount=web", "cp-creds --managed-serviceaccount web"} {
				got := s.run(strings.Fields(command + " --context hub " + tc.words)...)
				require.Equal(t, ui.ExitDone, got.code, got.err)
				require.Empty(t, got.err)
				require.JSONEq(t, `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false},"status":{"token":"`+
					tc.token+`"}}`, got.out)
			}
			require.Empty(t, s.hub.Changes())
		})
	}
}

func TestWhatIsMissingForATokenIsSaid(t *testing.T) {
	const web = "credential --managed-serviceaccount web -n readers --context hub"
	for name, tc := range map[string]struct{ info, words string }{
		"credential-no-account":   {asks(`{"clusterName":"c1"}`), "credential --context hub"},
		"credential-bad-account":  {asks(`{"clusterName":"c1"}`), "credential --managed-serviceaccount ../x --context hub"},
		"credential-no-info":      {"", web},
		"credential-no-json":      {"{", web},
		"credential-huge":         {strings.Repeat(" ", 1<<20+1), web},
		"credential-old":          {`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"}`, web},
		"credential-no-cluster":   {`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"}`, web},
		"credential-no-config":    {asks("null"), web},
		"credential-no-object":    {asks(`"c1"`), web},
		"credential-bad-cluster":  {asks(`{"clusterName":"c1/../x"}`), web},
		"credential-no-secret":    {asks(`{"clusterName":"c2"}`), web},
		"credential-of-another":   {asks(`{"clusterName":"c1-a"}`), "credential --managed-serviceaccount b -n readers --context hub"},
		"credential-no-token":     {asks(`{"clusterName":"c1"}`), "credential --managed-serviceaccount bad -n readers --context hub"},
		"credential-not-the-hub":  {asks(`{"clusterName":"c1"}`), "credential --managed-serviceaccount web --context itself"},
		"credential-unknown-word": {asks(`{"clusterName":"c1"}`), web + " more"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCredentialScene(t)
			s.env["KUBERNETES_EXEC_INFO"] = tc.info
			if strings.HasSuffix(tc.words, "itself") {
				itself := t.TempDir() + "/kubeconfig"
				require.NoError(t, os.WriteFile(itself, []byte(`{"apiVersion":"v1","kind":"Config","contexts":[{"name":"itself","context":{"cluster":"c","user":"u"}}],
					"clusters":[{"name":"c","cluster":{"server":"https://c1"}}],"users":[{"name":"u","user":{"exec":{"apiVersion":"client.authentication.k8s.io/v1",
					"interactiveMode":"Never","command":"kubectl-ocm","args":["credential","--managed-serviceaccount=web"]}}}]}`), 0o600))
				t.Setenv("KUBECONFIG", itself)
			}
			got := s.run(strings.Fields(tc.words)...)
			require.NotZero(t, got.code)
			require.Empty(t, got.out)
			require.NotContains(t, got.err, "secret of nobody")
			goldentest.Compare(t, "golden/"+name, transcript(strings.Fields(tc.words), got))
		})
	}
}

// TestHubInitGrantsTheRightsForCopies while both gates are on, and takes them away with either.
func TestHubInitGrantsTheRightsForCopies(t *testing.T) {
	for gates, want := range map[string]string{
		"ClusterProfile=true,ManagedServiceAccount=true":  "- kind: ServiceAccount\n  name: addon-manager-controller-sa\n  namespace: open-cluster-management-hub\n",
		"ClusterProfile=true":                             "[]",
		"ManagedServiceAccount=true":                      "[]",
		"ClusterProfile=true,ManagedServiceAccount=false": "[]",
	} {
		got := newScene(t).run("hub", "init", "--context", "spoke", "--dry-run", "--version", "v0.1.0", "--feature-gates", gates)
		require.Equal(t, ui.ExitDone, got.code, got.err)
		_, binding, found := strings.Cut(got.out, "  kind: ClusterRole\n  name: cluster-manager-credentials\nsubjects:")
		require.True(t, found)
		binding, _, _ = strings.Cut(binding, "---\n")
		require.Equal(t, want, strings.TrimLeft(binding, " \n")[:len(want)], gates)
	}
}
