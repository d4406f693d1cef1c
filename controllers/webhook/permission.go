// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"reflect"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/permission/grant"
	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
)

type permissionChange = change[permissionv1alpha1.ClusterPermission]

var permissions = schema.GroupResource{Group: permissionv1alpha1.GroupName, Resource: permissionv1alpha1.ResourceClusterPermissions}

// validatePermission refuses ClusterPermissions that can never be sent, and rights beyond those
// that a spec names from users who may not give them: the hub sends them with its own rights,
// and the agent applies them with those of an administrator. An unchanged spec is not checked.
func (s *Server) validatePermission(ctx context.Context, c permissionChange) error {
	if !s.o.Features().ClusterPermission {
		return nil
	}
	cp := c.now
	if _, agent := identity.Clusters(c.UserInfo.Groups); agent {
		return forbidden(permissions, cp.Name, "agent %q cannot change ClusterPermissions", c.UserInfo.Username)
	}
	if cp.DeletionTimestamp != nil || (!c.creates && reflect.DeepEqual(cp.Spec, c.old.Spec)) {
		return nil
	}
	if problems := grant.Problems(cp); len(problems) > 0 {
		return badRequest("%s", strings.Join(problems, "\n"))
	}
	more := grant.Elevated(&cp.Spec)
	if len(more) == 0 {
		return nil
	}
	if len(more) > maxProblems {
		more = append(more[:maxProblems], "and more")
	}
	return s.requireRight(ctx, c.UserInfo, authorizationv1.ResourceAttributes{
		Group: permissions.Group, Resource: permissions.Resource, Verb: permissionv1alpha1.VerbEscalate, Namespace: c.Namespace, Name: cp.Name,
	}, "user %q needs the verb %s on clusterpermissions in namespace %s to give rights beyond those that the spec names (%s); "+
		"name them one by one, or ask for that verb",
		c.UserInfo.Username, permissionv1alpha1.VerbEscalate, c.Namespace, strings.Join(more, ", "))
}

// advisePermission warns about what has no effect.
func (s *Server) advisePermission(_ context.Context, c permissionChange) []string {
	if !s.o.Features().ClusterPermission || c.now.DeletionTimestamp != nil {
		return nil
	}
	out := grant.Advice(c.now)
	if !grant.HasBindings(&c.now.Spec) {
		out = append(out, "spec: no binding is defined, so that nothing is sent; set clusterRoleBinding, clusterRoleBindings or roleBindings")
	}
	return out
}
