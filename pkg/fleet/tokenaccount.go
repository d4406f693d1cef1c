// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
)

// mayJoin makes again what is missing of the identity that clusters join with and of
// its rights: somebody may have deleted it to end all tokens, and a token without it is
// of no use. What is there stays as it is.
func (o *TokenOptions) mayJoin(ctx context.Context, r *run) ([]Change, error) {
	if err := needHub(ctx, o.Hub); err != nil {
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
		live, err := r.live(ctx, o.Hub, u)
		switch {
		case apierrors.IsForbidden(err):
			// Who may make tokens need not see rights.
		case err != nil:
			return nil, explain("reading "+describe(u), o.Hub, err)
		case live == nil:
			missing = append(missing, u)
		}
	}
	return r.apply(ctx, o.Hub, missing)
}

// needs tells whether the token depends on an object: a bootstrap token has rights by
// its group, the other by its ServiceAccount.
func (o *TokenOptions) needs(u *unstructured.Unstructured) bool {
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
