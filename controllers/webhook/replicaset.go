// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"reflect"
	"strings"

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
func (s *Server) validateReplicaSet(ctx context.Context, c change[workv1alpha1.ManifestWorkReplicaSet]) error {
	set, now, before := c.now, &c.now.Spec, &c.old.Spec
	if _, agent := identity.Clusters(c.UserInfo.Groups); agent {
		return forbidden(schema.GroupResource{Group: workv1.GroupName, Resource: "manifestworkreplicasets"}, set.Name,
			"agent %q cannot change sets of works", c.UserInfo.Username)
	}
	if err := s.checkSetExecutors(ctx, c); err != nil {
		return err
	}
	if set.DeletionTimestamp != nil || (!c.creates && reflect.DeepEqual(now, before)) {
		return nil
	}
	if !s.o.Features().ManifestWorkReplicaSet {
		return badRequest("ManifestWorkReplicaSet feature is disabled")
	}
	if workload := now.ManifestWorkTemplate.Workload; c.creates || !reflect.DeepEqual(workload, before.ManifestWorkTemplate.Workload) {
		if err := checkManifests(workload.Manifests, s.o.ManifestLimit); err != nil {
			return err
		}
	}
	if reflect.DeepEqual(now.PlacementRefs, before.PlacementRefs) {
		return nil
	}
	for i, ref := range now.PlacementRefs {
		if _, err := rollout.Parse(ref.RolloutStrategy); err != nil {
			return badRequest("spec.placementRefs[%d].rolloutStrategy.%s", i, err)
		}
	}
	return nil
}

// checkSetExecutors requires the right to act as the executor for changes of the template,
// and of its placements and deletion: another placement has the executor act on other
// clusters, and a removed one deletes what it applied. A set that is being deleted is not
// checked, since all its works are deleted anyway.
func (s *Server) checkSetExecutors(ctx context.Context, c change[workv1alpha1.ManifestWorkReplicaSet]) error {
	template, before := &c.now.Spec.ManifestWorkTemplate, &c.old.Spec.ManifestWorkTemplate
	switch {
	case c.creates:
		return s.checkExecutors(ctx, template, nil, c.AdmissionRequest)
	case c.now.DeletionTimestamp != nil || !reflect.DeepEqual(template, before):
		return s.checkExecutors(ctx, template, before, c.AdmissionRequest)
	case reflect.DeepEqual(c.now.Spec, c.old.Spec) && (!fateChanges(c.now, c.old) || c.UserInfo.Username == garbageCollector):
		return nil
	}
	return s.checkStored(ctx, before, c.AdmissionRequest)
}

// adviseReplicaSet warns about parts of a replica set that will not work.
func (s *Server) adviseReplicaSet(_ context.Context, c change[workv1alpha1.ManifestWorkReplicaSet]) []string {
	set := c.now
	if set.DeletionTimestamp != nil {
		return nil
	}
	var out []string
	if problems := validation.IsValidLabelValue(c.Namespace + "." + set.Name); len(problems) > 0 {
		out = append(out, fmt.Sprintf("metadata.name: %s.%s cannot be a label value of works: %s; nothing will be delivered, use a shorter name",
			c.Namespace, set.Name, strings.Join(problems, "; ")))
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
