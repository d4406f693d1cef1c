// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// restoreJoinRights restores what is missing of the identity with which clusters join, and of its
// rights: it may have been deleted to end all tokens, and a token is useless without it. What
// exists stays as it is.
func (o *Options) restoreJoinRights(ctx context.Context, r *fleet.Run) ([]fleet.Change, error) {
	if err := fleet.NeedHub(ctx, o.Hub); err != nil {
		return nil, err
	}
	objects, err := hub.Bootstrap()
	if err != nil {
		return nil, err
	}
	var missing []*unstructured.Unstructured
	for _, u := range objects {
		if !o.dependsOn(u) {
			continue
		}
		live, err := write.Live(ctx, o.Hub, u)
		switch {
		case apierrors.IsForbidden(err):
			// The right to create tokens does not imply the right to read RBAC.
		case err != nil:
			return nil, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
		case live == nil:
			missing = append(missing, u)
		}
	}
	return write.All(ctx, r, o.Hub, missing)
}

// dependsOn reports whether the token depends on an object: a bootstrap token gets its rights by
// its group, the other kind by its ServiceAccount.
func (o *Options) dependsOn(u *unstructured.Unstructured) bool {
	if u.GetKind() == "ClusterRole" {
		return true
	}
	subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
	for _, subject := range subjects {
		if s, ok := subject.(map[string]any); ok {
			return (s["kind"] == "Group") == o.Bootstrap
		}
	}
	return !o.Bootstrap
}
