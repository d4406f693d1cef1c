// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Renewals count for the agent that the hub recorded: an older copy of the cluster must not
// make that agent an unknown one.
func TestWhoHoldsAClusterIsNotedByTheHubAlone(t *testing.T) {
	const key = clusterv1.AnnotationAgentName
	for name, tc := range map[string]struct {
		before, now string
		user        authenticationv1.UserInfo
		want        string
	}{
		"a backup is put in place":       {"new", "old", person, "new"},
		"a name is made up":              {"", "evil", person, ""},
		"the name is taken away":         {"new", "", person, ""},
		"the hub notes the next agent":   {"old", "new", hubItself, "new"},
		"the hub notes the first agent":  {"", "new", hubItself, "new"},
		"nothing changes":                {"new", "new", person, "new"},
		"an agent's try is left to fail": {"new", "evil", agentOf("c1"), "evil"},
	} {
		t.Run(name, func(t *testing.T) {
			h := server(&stated{}, all)
			with := func(agent string) *clusterv1.ManagedCluster {
				if agent == "" {
					return mc()
				}
				return mc(annotated(key, agent))
			}
			got := patched(t, with(tc.now), send(t, h, webhook.PathMutateCluster, with(tc.before), with(tc.now), tc.user))
			require.Equal(t, tc.want, got.Annotations[key])
		})
	}
	restored := mc(annotated(key, "old"))
	restored.Annotations[clusterv1.AnnotationCertificateExpires] = "2099-01-01T00:00:00Z"
	got := patched(t, restored, send(t, server(&stated{}, all), webhook.PathMutateCluster, nil, restored, person))
	require.NotContains(t, got.Annotations, key)
	require.NotContains(t, got.Annotations, clusterv1.AnnotationCertificateExpires)
}

func TestALargeClusterThatIsStoredCanBeChanged(t *testing.T) {
	h := server(&stated{rights: []string{"create managedclustersets/join s1"}}, all)
	large := mc(annotated("a", strings.Repeat("x", 40<<10)))
	more := large.DeepCopy()
	more.Annotations["b"] = "c"
	check(t, send(t, h, webhook.PathValidateCluster, large, large, person), 0, "")
	check(t, send(t, h, webhook.PathValidateCluster, large, more, person), 400, "more than 32768")
	check(t, send(t, h, webhook.PathValidateCluster, large, more, hubItself), 0, "")
	applied := mc(annotated(corev1.LastAppliedConfigAnnotation, strings.Repeat("x", 40<<10)))
	check(t, send(t, h, webhook.PathValidateCluster, nil, applied, person), 0, "")
}
