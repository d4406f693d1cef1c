// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
)

// plan returns what an adoption does to every object, given what applying ours would change.
func plan(s *state, applied []fleet.Change) []fleet.Planned {
	var out []fleet.Planned
	seen := map[string]bool{}
	add := func(u *unstructured.Unstructured, fate fleet.Fate, note string) {
		if !seen[key(u)] {
			seen[key(u)] = true
			out = append(out, fleet.Planned{Object: fleet.Reference(u), Fate: fate, Note: note})
		}
	}
	for _, c := range applied {
		fate, note := fleet.FateOf(c.Action), ""
		switch live := s.live[key(c.Object)]; {
		case c.Object.GetKind() == "Deployment" && s.operator != nil:
			fate, note = fleet.Replaced, hub.ImageOf(s.operator)+" ends"
		case c.Object.GetKind() == "ClusterManager" && live != nil, c.Object.GetKind() == "Namespace" && live != nil:
			fate, note = fleet.Kept, "labelled as ours"
		}
		add(c.Object, fate, note)
	}
	for _, r := range []role{deciding, admitting, passive} {
		for _, u := range s.others(r) {
			add(u, fleet.Removed, map[role]string{admitting: "once ours answers"}[r])
		}
	}
	for _, u := range kept() {
		if s.live[key(u)] != nil {
			add(u, fleet.Kept, "")
		}
	}
	made, _ := processParts() // gather has reported an error
	for _, u := range made {
		if live := s.live[key(u)]; live == nil {
			add(u, fleet.Added, "by our process")
		} else if !isOurs(live) {
			add(u, fleet.Replaced, "by our process")
		} else {
			add(u, fleet.Kept, "")
		}
	}
	slices.SortStableFunc(out, func(a, b fleet.Planned) int { return cmp.Compare(fateOrder[a.Fate], fateOrder[b.Fate]) })
	return append(out, s.counts...)
}

var fateOrder = map[fleet.Fate]int{fleet.Removed: 0, fleet.Replaced: 1, fleet.Restored: 2, fleet.Added: 3, fleet.Kept: 4}

// isOurs reports whether our process applied an object.
func isOurs(u *unstructured.Unstructured) bool {
	return u.GetAnnotations()[clusterv1.AnnotationIntent] != ""
}

// inOrder returns the live objects in the order to put them back: APIs and admission first, the
// operator last.
func (s *state) inOrder() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, u := range s.live {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(restoreRank(a), restoreRank(b)), cmp.Compare(key(a), key(b)))
	})
	return out
}

func restoreRank(u *unstructured.Unstructured) int {
	switch u.GetKind() {
	case "Namespace", "ClusterManager":
		return 0
	case "CustomResourceDefinition":
		return 1
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return 2
	case "Deployment":
		if u.GetNamespace() == operatorv1.NamespaceOperator {
			return 5
		}
		return 4
	}
	return 3
}
