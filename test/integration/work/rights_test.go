// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	agentconfig "github.com/kubectl-ocm/kubectl-ocm/config/agent"
)

var subjectAccessReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}

// agentUser is the user name of the agent on the managed cluster.
var agentUser = "system:serviceaccount:open-cluster-management-agent:" + agentconfig.ServiceAccount("klusterlet")

// may reports whether the cluster's authorizer allows a user something. It learns of
// roles and bindings some time after they were written.
func may(t testing.TB, client dynamic.Interface, user string, attributes map[string]any) bool {
	t.Helper()
	return mayAs(t, client, identity{user: user}, attributes)
}

// mayAs is may for a user in groups.
func mayAs(t testing.TB, client dynamic.Interface, who identity, attributes map[string]any) bool {
	t.Helper()
	groups := []any{}
	for _, g := range who.groups {
		groups = append(groups, g)
	}
	answer, err := client.Resource(subjectAccessReviews).Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"spec": map[string]any{"user": who.user, "groups": groups, "resourceAttributes": attributes},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	allowed, _, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	require.NoError(t, err)
	return allowed
}

// awaitRights waits until a user has the rights of rules in JSON in a namespace, or in
// the whole cluster if it is empty.
func awaitRights(t testing.TB, client dynamic.Interface, user, namespace, rules string) {
	t.Helper()
	var list []rbacv1.PolicyRule
	require.NoError(t, json.Unmarshal([]byte(rules), &list), rules)
	for _, rule := range list {
		for _, verb := range rule.Verbs {
			attributes := map[string]any{"verb": verb, "namespace": namespace, "group": rule.APIGroups[0], "resource": rule.Resources[0]}
			if len(rule.ResourceNames) > 0 {
				attributes["name"] = rule.ResourceNames[0]
			}
			wait(t, func() bool { return may(t, client, user, attributes) }, "%s does not get the right %v", user, attributes)
		}
	}
}

// aggregate gives the agent more rights as a user does: with a role that has the
// aggregation label. Tests that use the same name use the same rules.
func (s *scene) aggregate(name, rules string) {
	s.t.Helper()
	apply(s.t, s.spoke, clusterRoles, "", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",
		"metadata":{"name":"`+name+`","labels":{"open-cluster-management.io/aggregate-to-work":"true"}},"rules":`+rules+`}`)
	awaitRights(s.t, s.spoke, agentUser, "", rules)
}
