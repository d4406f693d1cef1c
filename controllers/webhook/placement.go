// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// maxProblems is how many mistakes one refusal names.
const maxProblems = 5

// validatePlacement refuses placements that could never be followed. What is stored
// and does not change is left alone, so that metadata and status of a placement
// that was wrong before stay writable.
func (s *Server) validatePlacement(_ context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	p, old, err := objects[clusterv1beta1.Placement](r)
	if err != nil || p.DeletionTimestamp != nil || unchanged(p, old) {
		return nil, err
	}
	known := map[string]bool{}
	if old != nil {
		for _, problem := range schedule.Validate(old) {
			known[problem.Field+problem.Message] = true
		}
	}
	var out []string
	for _, problem := range schedule.Validate(p) {
		if problem.Severity == schedule.SeverityError && !known[problem.Field+problem.Message] {
			out = append(out, fmt.Sprintf("%s: %s; %s", problem.Field, problem.Message, problem.Fix))
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	if len(out) > maxProblems {
		out = append(out[:maxProblems], fmt.Sprintf("and %d more", len(out)-maxProblems))
	}
	return nil, apierrors.NewBadRequest(strings.Join(out, "\n"))
}

// unchanged tells that an update leaves the spec as it is.
func unchanged(p, old *clusterv1beta1.Placement) bool {
	return old != nil && reflect.DeepEqual(p.Spec, old.Spec)
}

// advisePlacement names what in a placement has no effect.
func advisePlacement(_ context.Context, r *admissionv1.AdmissionRequest) []string {
	p, old, err := objects[clusterv1beta1.Placement](r)
	if err != nil || p.DeletionTimestamp != nil || unchanged(p, old) {
		return nil
	}
	var out []string
	for _, problem := range schedule.Validate(p) {
		out = append(out, fmt.Sprintf("%s: %s; %s", problem.Field, problem.Message, problem.Fix))
	}
	return out
}

// soonEnough is how long the API server is asked for bindings at most: a warning is
// not worth waiting for.
const soonEnough = 2 * time.Second

// adviseBindings names the sets of a placement that its namespace is not bound to.
// Where the caches have them all nothing is asked; where they have not, what was
// just bound must not be warned of.
func (s *Server) adviseBindings(ctx context.Context, r *admissionv1.AdmissionRequest) []string {
	p, old, err := objects[clusterv1beta1.Placement](r)
	if err != nil || p.DeletionTimestamp != nil || unchanged(p, old) || s.o.Bound == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, soonEnough)
	defer cancel()
	var out []string
	for _, live := range []bool{false, true} {
		bound, err := s.o.Bound(ctx, r.Namespace, live)
		if err != nil {
			return nil
		}
		if out = unbound(p, r.Namespace, bound); len(out) == 0 {
			return nil
		}
	}
	return out
}

// unbound are the warnings on sets that are not bound.
func unbound(p *clusterv1beta1.Placement, namespace string, bound []string) []string {
	if len(bound) == 0 {
		return []string{
			fmt.Sprintf(
				"namespace %s has no ManagedClusterSetBinding, so that nothing is selected; bind a set: kubectl ocm clusterset bind SET -n %s",
				namespace, namespace,
			),
		}
	}
	var out []string
	for i, set := range p.Spec.ClusterSets {
		if !slices.Contains(bound, set) {
			out = append(
				out,
				fmt.Sprintf(
					"spec.clusterSets[%d]: namespace %s has no ManagedClusterSetBinding %.63q, so that nothing is selected from that set; kubectl ocm clusterset bind %.63s -n %s",
					i, namespace, set, set, namespace,
				),
			)
		}
	}
	return out
}
