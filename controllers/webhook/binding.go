// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// validateBinding requires a binding to have the name of its set, and its creator to have the
// right to bind the set.
func (s *Server) validateBinding(ctx context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	binding, old, err := objects[clusterv1beta2.ManagedClusterSetBinding](r)
	if err != nil {
		return nil, err
	}
	if binding.Name != binding.Spec.ClusterSet {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name: %q must be the same as spec.clusterSet %q", binding.Name, binding.Spec.ClusterSet))
	}
	if old != nil {
		return nil, nil
	}
	message := fmt.Sprintf("user %q is not allowed to bind cluster set %q", r.UserInfo.Username, binding.Spec.ClusterSet)
	return nil, s.requireRight(ctx, r.UserInfo, setRight(binding.Spec.ClusterSet, clusterv1.SubresourceBind), message)
}
