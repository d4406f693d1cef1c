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

// mayJoin makes again what is missing of the identity that clusters join with and of
// its rights: somebody may have deleted it to end all tokens, and a token without it is
// of no use. What is there stays as it is.
func (o *Options) mayJoin(ctx context.Context, r *fleet.Run) ([]fleet.Change, error) {
	if err := fleet.NeedHub(ctx, o.Hub); err != nil {
		return nil, err
	}
	objects, err := hub.Bootstrap()
	if err != nil {
		return nil, err
	}
	var missing []*unstructured.Unstructured
	for _, u := range objects {
		if !o.needs(u) {
			continue
		}
		live, err := write.Live(ctx, o.Hub, u)
		switch {
		case apierrors.IsForbidden(err):
			// Who may make tokens need not see rights.
		case err != nil:
			return nil, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
		case live == nil:
			missing = append(missing, u)
		}
	}
	return write.All(ctx, r, o.Hub, missing)
}

// needs tells whether the token depends on an object: a bootstrap token has rights by
// its group, the other by its ServiceAccount.
func (o *Options) needs(u *unstructured.Unstructured) bool {
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
