// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	encoding "encoding/base64"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
)

// newTraceScene returns a hub with replica sets, and a managed cluster with objects that
// they declare. The agent's kubeconfig has the address of the test's hub.
func newTraceScene(t *testing.T) *scene {
	t.Helper()
	s := newWorksScene(t, "worksets")
	text, err := os.ReadFile("testdata/traced.yaml")
	require.NoError(t, err)
	kept := "apiVersion: v1\nkind: Config\ncurrent-context: hub\ncontexts: [{name: hub, context: {cluster: hub, user: agent}}]\n" +
		"clusters: [{name: hub, cluster: {server: '" + s.hub.URL + "', certificate-authority-data: " +
		encoding.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{
			Type:  "CERTIFICATE",
			Bytes: s.hub.Certificate().Raw,
		})) + "}}]\nusers: [{name: agent, user: {token: secret}}]\n"
	s.spoke = apitest.New(t, created, strings.NewReplacer("HASH", kubeconfig.HubHash(s.hub.URL),
		"KUBECONFIG", encoding.StdEncoding.EncodeToString([]byte(kept))).Replace(string(text)))
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub, "spoke": s.spoke}))
	return s
}

func TestWhatATraceTells(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		code int
	}{
		"deployment":       {"work trace deploy/web -n shop --context spoke", 0},
		"deployment-json":  {"work trace deployments.apps/web -n shop --context spoke -o json", 0},
		"deployment-names": {"work trace Deployment web -n shop --context spoke --hub-context hub -o name", 0},
		"pod":              {"work trace po web-5c9-x2x4k -n shop --context spoke", 0},
		"two-works":        {"work trace cm/shared -n shop --context spoke", 0},
		"not-owned":        {"work trace cm/a --context spoke", 0},
		"other-hub":        {"work trace ns/shop --context spoke", 0},
		"other-hub-named":  {"work trace ns/shop --context spoke --hub-context hub -c cluster1", 0},
		"nobody":           {"work trace pod/stray -n shop --context spoke", 1},
		"missing":          {"work trace deploy/nosuch -n shop --context spoke", 1},
		"no-type":          {"work trace deploymnt/web -n shop --context spoke", 1},
		"no-group":         {"work trace deployments.extensions/web -n shop --context spoke", 1},
		"no-name":          {"work trace deploy --context spoke", 2},
		"named-twice":      {"work trace deploy/web web --context spoke", 2},
		"no-hub-context":   {"work trace deploy/web -n shop --context spoke --hub-context hob", 1},
		"help":             {"work trace --help", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTraceScene(t)
			words := strings.Fields(c.line)
			got := s.run(words...)
			hash := kubeconfig.HubHash(s.hub.URL)
			for _, text := range []*string{&got.out, &got.err} {
				*text = strings.NewReplacer(hash, strings.Repeat("6f", 32), hash[:12], strings.Repeat("6f", 6)).Replace(*text)
			}
			require.Equal(t, c.code, got.code, got.err)
			require.Empty(t, s.hub.Changes())
			require.Empty(t, s.spoke.Changes())
			goldentest.Compare(t, "golden/trace-"+name, transcript(words, got))
		})
	}
}

// If the agent uses an address that no context has, the trace shows the address.
func TestATraceOfAHubThatIsNoContext(t *testing.T) {
	s := newTraceScene(t)
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"spoke": s.spoke}))
	got := s.run("work", "trace", "deploy/web", "-n", "shop", "--context", "spoke")
	require.Zero(t, got.code, got.err)
	require.Regexp(t, `(?m)^   └─ Hub +https://hub:6443 +- .* this cluster is cluster1 there$`, got.out)
	require.Contains(t, got.err, "name its context by --hub-context")
	require.Contains(t, s.run("work", "trace", "deploy/web", "-n", "shop", "--context", "spoke", "-o", "json").out,
		`"no context has the address of the hub; name its context by --hub-context to see more"`)
}

// It is an error if the named hub does not answer, but the objects of the managed cluster
// are printed all the same.
func TestATraceWhoseHubDoesNotAnswer(t *testing.T) {
	s := newTraceScene(t)
	s.hub.CloseClientConnections()
	s.hub.Close()
	got := s.run("work", "trace", "deploy/web", "-n", "shop", "--context", "spoke", "--hub-context", "hub")
	require.Equal(t, 1, got.code, got.err)
	require.Contains(t, got.out, "AppliedManifestWork")
	require.Contains(t, got.err, "error: ")
	got = s.run("work", "trace", "deploy/web", "-n", "shop", "--context", "spoke")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.err, "warning: ")
}
