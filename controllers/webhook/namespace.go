// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PathDeleteNamespace is that of the rule on the deletion of clusters' namespaces.
const PathDeleteNamespace = "/validate-delete-namespace"

// validateNamespaceDeletion keeps the namespace of a cluster while works are in it.
// Kubernetes would delete them with it, and the agent what they applied, though nobody
// asked for the removal of what runs on the cluster.
func (s *Server) validateNamespaceDeletion(ctx context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	if r.Operation != admissionv1.Delete {
		return nil, nil
	}
	works, err := s.o.Hub.Standing(ctx, r.Name)
	if err != nil || works == 0 {
		return nil, err
	}
	return nil, apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource.Resource}, r.Name, fmt.Errorf(
		"it holds %d works of cluster %s, and its agent would remove what they have applied. Remove the cluster: kubectl ocm cluster remove %s "+
			"(with --keep-works what runs there stays); or delete the works first", works, r.Name, r.Name))
}
