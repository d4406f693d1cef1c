// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PathDeleteNamespace is the path of the rule for deletions of cluster namespaces.
const PathDeleteNamespace = "/validate-delete-namespace"

// validateNamespaceDeletion refuses to delete the namespace of a cluster while it contains
// works. Kubernetes would delete the works with it, and the agent what they applied, though
// nobody asked to remove what runs on the cluster.
func (s *Server) validateNamespaceDeletion(ctx context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	if r.Operation != admissionv1.Delete {
		return nil, nil
	}
	works, err := s.o.Hub.CountWorks(ctx, r.Name)
	if err != nil || works == 0 {
		return nil, err
	}
	return nil, forbidden(schema.GroupResource{Resource: r.Resource.Resource}, r.Name,
		"it holds %d works of cluster %s, and its agent would remove what they have applied. Remove the cluster: kubectl ocm cluster remove %s "+
			"(with --keep-works what runs there stays); or delete the works first", works, r.Name, r.Name)
}
