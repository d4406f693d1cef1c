// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

// validateReplicaSet refuses replica sets that the hub could not deliver, and templates with
// an executor that the requester may not use in the namespace of the set. The hub creates the
// works with its own permissions in every selected cluster namespace, so the requester's
// permission can only be checked here: a user who may act as an account in the namespace of a
// set may do so on all its clusters. An unchanged spec is not checked.
func (s *Server) validateReplicaSet(ctx context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	set, old, err := objects[workv1alpha1.ManifestWorkReplicaSet](r)
	if err != nil {
		return nil, err
	}
	if _, agent := identity.Clusters(r.UserInfo.Groups); agent {
		return nil, apierrors.NewForbidden(schema.GroupResource{Group: workv1.GroupName, Resource: "manifestworkreplicasets"}, set.Name,
			fmt.Errorf("agent %q cannot change sets of works", r.UserInfo.Username))
	}
	if err := s.checkSetExecutors(ctx, set, old, r); err != nil {
		return nil, err
	}
	if set.DeletionTimestamp != nil || (old != nil && reflect.DeepEqual(set.Spec, old.Spec)) {
		return nil, nil
	}
	if !s.o.Features().ManifestWorkReplicaSet {
		return nil, apierrors.NewBadRequest("ManifestWorkReplicaSet feature is disabled")
	}
	if old == nil || !reflect.DeepEqual(set.Spec.ManifestWorkTemplate.Workload, old.Spec.ManifestWorkTemplate.Workload) {
		if err := checkManifests(set.Spec.ManifestWorkTemplate.Workload.Manifests, s.o.ManifestLimit); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if old == nil || !reflect.DeepEqual(set.Spec.PlacementRefs, old.Spec.PlacementRefs) {
		return nil, checkRollouts(set)
	}
	return nil, nil
}

// checkSetExecutors requires the right to act as the executor for changes of the template,
// and of its placements and deletion: another placement has the executor act on other
// clusters, and a removed one deletes what it applied. A set that is being deleted is not
// checked, since all its works are deleted anyway.
func (s *Server) checkSetExecutors(ctx context.Context, set, old *workv1alpha1.ManifestWorkReplicaSet, r *admissionv1.AdmissionRequest) error {
	template := &set.Spec.ManifestWorkTemplate
	if old == nil {
		return s.checkExecutors(ctx, template, nil, r)
	}
	before := &old.Spec.ManifestWorkTemplate
	if set.DeletionTimestamp != nil || !reflect.DeepEqual(template, before) {
		return s.checkExecutors(ctx, template, before, r)
	}
	if reflect.DeepEqual(set.Spec, old.Spec) && (!fateChanges(set, old) || r.UserInfo.Username == garbageCollector) {
		return nil
	}
	return s.checkStored(ctx, before, r)
}

// checkRollouts refuses invalid rollout strategies.
func checkRollouts(set *workv1alpha1.ManifestWorkReplicaSet) error {
	for i, ref := range set.Spec.PlacementRefs {
		if _, err := rollout.Parse(ref.RolloutStrategy); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("spec.placementRefs[%d].rolloutStrategy.%s", i, err))
		}
	}
	return nil
}

// adviseReplicaSet warns about parts of a replica set that will not work.
func (s *Server) adviseReplicaSet(_ context.Context, r *admissionv1.AdmissionRequest) []string {
	set, _, err := objects[workv1alpha1.ManifestWorkReplicaSet](r)
	if err != nil || set.DeletionTimestamp != nil {
		return nil
	}
	var out []string
	if problems := validation.IsValidLabelValue(r.Namespace + "." + set.Name); len(problems) > 0 {
		out = append(out, fmt.Sprintf("metadata.name: %s.%s cannot be a label value of works: %s; nothing will be delivered, use a shorter name",
			r.Namespace, set.Name, strings.Join(problems, "; ")))
	}
	seen := map[string]bool{}
	for i, ref := range set.Spec.PlacementRefs {
		if seen[ref.Name] {
			out = append(out, fmt.Sprintf("spec.placementRefs[%d].name: placement %q is listed twice; the first strategy applies to its clusters", i, ref.Name))
		}
		seen[ref.Name] = true
	}
	return append(out, s.adviseSpec("spec.manifestWorkTemplate.", &set.Spec.ManifestWorkTemplate)...)
}
