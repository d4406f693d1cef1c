// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

func TestSecretsAreRedactedButTheirKubeconfigCanBeChecked(t *testing.T) {
	raw, err := BootstrapKubeconfig(Endpoint{Server: "https://hub"}, goodToken)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "data": map[string]any{
		"kubeconfig": base64.StdEncoding.EncodeToString(raw), "other": base64.StdEncoding.EncodeToString([]byte("hush"))}}}
	out := fleet.Redact(u)
	require.Equal(t, fleet.RedactedToken, fleet.SecretValue(out, "other"))
	require.Contains(t, fleet.SecretValue(out, "kubeconfig"), "https://hub")
	require.NotContains(t, fleet.SecretValue(out, "kubeconfig"), goodToken)
	require.Contains(t, fleet.SecretValue(u, "kubeconfig"), goodToken, "the object itself is not changed")
}
