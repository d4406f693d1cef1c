// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// maxProblems is the most mistakes that one refusal names.
const maxProblems = 5

// validatePlacement refuses placements that can never be decided. An unchanged spec is not
// checked, so that metadata and status of an invalid stored placement stay writable.
func validatePlacement(_ context.Context, c placementChange) error {
	if settled(c) {
		return nil
	}
	known := map[string]bool{}
	if !c.creates {
		for _, problem := range schedule.Validate(c.old) {
			known[problem.Field+problem.Message] = true
		}
	}
	out := problemsOf(c.now, func(p schedule.Problem) bool {
		return p.Severity == schedule.SeverityError && !known[p.Field+p.Message]
	})
	if len(out) == 0 {
		return nil
	}
	if len(out) > maxProblems {
		out = append(out[:maxProblems], fmt.Sprintf("and %d more", len(out)-maxProblems))
	}
	return apierrors.NewBadRequest(strings.Join(out, "\n"))
}

type placementChange = change[clusterv1beta1.Placement]

// settled reports whether there is nothing to check: the placement is being deleted, or an
// update leaves its spec as it is.
func settled(c placementChange) bool {
	return c.now.DeletionTimestamp != nil || (!c.creates && reflect.DeepEqual(c.now.Spec, c.old.Spec))
}

func problemsOf(p *clusterv1beta1.Placement, which func(schedule.Problem) bool) (out []string) {
	for _, problem := range schedule.Validate(p) {
		if which(problem) {
			out = append(out, fmt.Sprintf("%s: %s; %s", problem.Field, problem.Message, problem.Fix))
		}
	}
	return out
}

// advisePlacement warns about parts of a placement that have no effect.
func advisePlacement(_ context.Context, c placementChange) []string {
	if settled(c) {
		return nil
	}
	return problemsOf(c.now, func(schedule.Problem) bool { return true })
}

// bindingsTimeout limits the request for bindings: a warning is not worth a longer wait.
const bindingsTimeout = 2 * time.Second

// adviseBindings warns about sets of a placement that its namespace is not bound to. If a
// binding is missing from the caches, it asks the API server, so that a binding created just
// before causes no warning.
func (s *Server) adviseBindings(ctx context.Context, c placementChange) []string {
	if settled(c) || s.o.Bound == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, bindingsTimeout)
	defer cancel()
	var out []string
	for _, live := range []bool{false, true} {
		bound, err := s.o.Bound(ctx, c.Namespace, live)
		if err != nil {
			return nil
		}
		if out = unbound(c.now, c.Namespace, bound); len(out) == 0 {
			return nil
		}
	}
	return out
}

// unbound returns the warnings about sets that are not bound.
func unbound(p *clusterv1beta1.Placement, namespace string, bound []string) []string {
	if len(bound) == 0 {
		return []string{fmt.Sprintf("namespace %s has no ManagedClusterSetBinding, so nothing is selected; "+
			"bind a set: kubectl ocm clusterset bind SET -n %s", namespace, namespace)}
	}
	var out []string
	for i, set := range p.Spec.ClusterSets {
		if !slices.Contains(bound, set) {
			out = append(out, fmt.Sprintf("spec.clusterSets[%d]: namespace %s has no ManagedClusterSetBinding %.63q, "+
				"so nothing is selected from that set; kubectl ocm clusterset bind %.63s -n %s", i, namespace, set, set, namespace))
		}
	}
	return out
}
