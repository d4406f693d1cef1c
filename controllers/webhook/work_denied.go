// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// checkDenied refuses new content for a denied cluster, whoever writes it. Its agent keeps
// the right to read works until its existing works are gone, because it must clean them up,
// and must not read content written after the denial. Content may be removed, and the
// deletion options of a work may be changed.
func (s *Server) checkDenied(ctx context.Context, work, old *workv1.ManifestWork) error {
	if old != nil && !slices.ContainsFunc(work.Spec.Workload.Manifests, func(m workv1.Manifest) bool {
		return !slices.ContainsFunc(old.Spec.Workload.Manifests, func(o workv1.Manifest) bool { return bytes.Equal(o.Raw, m.Raw) })
	}) {
		return nil
	}
	denied, err := s.o.Hub.Denied(ctx, work.Namespace)
	if err != nil || !denied {
		return err
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: workv1.GroupName, Resource: "manifestworks"}, work.Name,
		fmt.Errorf("cluster %s is denied, and its agent may still read works: it gets nothing new until it is accepted again: kubectl ocm accept %s",
			work.Namespace, work.Namespace))
}
