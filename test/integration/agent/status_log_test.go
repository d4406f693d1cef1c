// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// CVE-2020-8565: no token and no key is logged, at any verbosity.
func TestCVE20208565NoTokenAndNoKeyIsLogged(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	token := h.As(t, "open-cluster-management", clusterv1.BootstrapServiceAccount).BearerToken
	raw, err := h.endpoint("hub").WithToken(token)
	require.NoError(t, err)
	s.install(t, config.Options{ClusterName: "quietly", BootstrapKubeconfig: raw})
	a := s.start(t, "run", "-v", "10")
	h.join(t, "quietly")
	// An unusable token is reported, and is still a secret.
	const broken = "eyJhbGciOiJSUzI1NiJ9.bm8tdG9rZW4tYXQtYWxs.c2lnbmF0dXJl"
	unusable, err := h.endpoint("hub2").WithToken(broken)
	require.NoError(t, err)
	s.setBootstrap(t, unusable)
	var text string
	await(t, func() bool {
		all, err := os.ReadFile(a.log)
		text = string(all)
		return err == nil && strings.Count(text, "Registration moved on") > 3
	})
	a.kill()
	key := strings.Split(string(s.secret(t.Context(), "hub-kubeconfig-secret")["tls.key"]), "\n")
	require.Greater(t, len(key), 2)
	for what, secret := range map[string]string{
		"the bootstrap token":  token,
		"its signature":        token[strings.LastIndex(token, ".")+1:],
		"the token that fails": broken,
		"the key":              key[1],
	} {
		require.NotContains(t, text, secret, what)
	}
	require.NotContains(t, text, "PRIVATE KEY")
	require.NotContains(t, text, "Bearer ")
}
