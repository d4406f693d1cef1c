// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// TestTheImagePullSecretIsCopiedToWhereAddOnsRun, but not over one of somebody else.
func TestTheImagePullSecretIsCopiedToWhereAddOnsRun(t *testing.T) {
	applied := func(s State) (out []string) {
		for _, at := range writesTo(s, request.Secrets) {
			require.False(t, at.removed, at.Namespace)
			out = append(out, at.Namespace)
		}
		return out
	}
	s := serving()
	s.Namespace, s.AddOnNamespace = operatorv1.NamespaceAgent, shared.Namespace{ResourceVersion: "1"}
	s.Others = []string{"second"}
	s.PullNamespaces = []string{operatorv1.NamespaceAgent, "asks", "has", "second", "gone"}
	s.PullCopies = map[string]pullCopy{
		"has": {namespace: "has"}, "second": {namespace: "second", owner: "second"}, "gone": {namespace: "gone", owner: "left"},
		"old": {namespace: "old", owner: "klusterlet"},
	}
	left := writesTo(s, request.Secrets)
	require.Len(t, left, 1, "there is nothing to copy")
	require.True(t, left[0].removed)
	require.Equal(t, "old", left[0].Namespace)

	s.PullSource = &credential.Secret{Type: "kubernetes.io/dockerconfigjson"}
	require.Equal(t, []string{"asks", "gone", operatorv1.NamespaceAgentAddOn}, applied(s))
	s.AddOnNamespace.Leaving = true
	require.Equal(t, []string{"asks", "gone"}, applied(s))
	s.Reading = true
	require.Empty(t, applied(s), "the copies are not read yet")
}
