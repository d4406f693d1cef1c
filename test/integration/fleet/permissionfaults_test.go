// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	library "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// TestPermissionsThatAClusterDoesNotHaveAreNamed plants ClusterPermissions that cannot be sent, or that the cluster
// refuses wholly or in part, and types what check says against each.
func TestPermissionsThatAClusterDoesNotHaveAreNamed(t *testing.T) {
	t.Parallel()
	agent := harness.Program(t, "controllers/ocm-agent")
	hub := harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")})
	spoke := harness.FreshWithNode(t, "spoke", map[string]string{"ocm-agent": agent})
	kubeconfig(t, hub, spoke)
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--feature-gates", "ClusterPermission=true", "--timeout", "5m").code)
	require.Zero(t, run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--timeout", "5m").code)
	patched(t, hub, clusters, "", "cluster1", `{"spec":{"managedClusterClientConfigs":[{"url":"`+spoke.Config.Host+`"}]}}`)
	permissions := hub.Dynamic(t).Resource(library.ClusterPermissions).Namespace("cluster1")
	check := []string{"cluster", "cluster1", "--context", "hub"}
	for _, tc := range []struct {
		name, spec         string
		code, title, cause string
		fix                string
	}{
		{
			name: "partly", code: "OCM0812", title: "the cluster refuses 2 of its 4 objects", cause: `namespaces "away" not found`,
			spec: `{clusterRole: {rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}, clusterRoleBinding: {subject: {kind: User, name: ann}},
				roles: [{namespace: away, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}],
				roleBindings: [{namespace: away, roleRef: {kind: Role}, subject: {kind: User, name: ann}}]}`,
			fix: "kubectl create namespace away --context spoke ",
		},
		{
			name: "wholly", code: "OCM0812", title: "the cluster refuses 1 of its 1 objects", cause: `namespaces "gone" not found`,
			spec: `{roleBindings: [{namespace: gone, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subject: {kind: User, name: ann}}]}`,
			fix:  "kubectl create namespace gone --context spoke ",
		},
		{
			name: "selects", code: "OCM0811", title: "it cannot be sent as it is", cause: "namespaceSelector",
			spec: `{roles: [{namespaceSelector: {matchLabels: {team: nowhere}}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}],
				roleBindings: [{namespaceSelector: {matchLabels: {team: nowhere}}, roleRef: {kind: Role}, subject: {kind: User, name: ann}}]}`,
			fix: "kubectl edit clusterpermission selects -n cluster1 --context hub ",
		},
		{
			name: "refers", code: "OCM0813", title: "it binds roles that the cluster does not have", cause: "nosuch-role",
			spec: `{validate: true, clusterRoleBinding: {roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nosuch-role},
				subject: {kind: User, name: ann}}}`,
			fix: "kubectl edit clusterpermission refers -n cluster1 --context hub ",
		},
	} {
		var spec map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(tc.spec), &spec))
		u := object(library.ClusterPermissions.GroupVersion().String(), "ClusterPermission", "cluster1", tc.name, map[string]any{"spec": spec})
		eventually(t, func() bool { // the kind may not be served yet, or its admission not answer
			_, err := permissions.Create(t.Context(), u, metav1.CreateOptions{})
			return err == nil
		}, patience, 200*time.Millisecond, tc.name)
		_ = found(t, tc.code, check...)
		for code := range looked(t, check...) {
			require.NotContains(t, []string{"OCM0311", "OCM0624"}, code, "the work is not told of, too")
		}
		f := mended(t, tc.code, check...)
		require.Equal(t, "ClusterPermission cluster1/"+tc.name+": "+tc.title, f.Title)
		require.Contains(t, f.Cause, tc.cause)
		require.Contains(t, f.Fix, tc.fix)
	}
	// The role of a binding cannot be changed on the cluster.
	f := mended(t, "OCM0812", check...)
	require.Equal(t, "ClusterPermission cluster1/refers: the cluster refuses 1 of its 1 objects", f.Title)
	require.Contains(t, f.Fix, "kubectl delete clusterrolebinding refers --context spoke ")
	require.Contains(t, run(t, append([]string{"check"}, check...)...).out, "4 of 4 identities and permissions are as declared")
}
