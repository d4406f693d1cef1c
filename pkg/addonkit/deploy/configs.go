// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// MergeConfigs combines the manifest options of an author with those generated for the
// health of an add-on: it keeps the feedback rules of both, and the author's settings for
// everything else. Agents use the first option that matches an object, so an author's
// pattern wins over an object named for health, and patterns for health come last.
func MergeConfigs(generated, author []workv1.ManifestConfigOption) []workv1.ManifestConfigOption {
	var out, patterns []workv1.ManifestConfigOption
	for _, g := range generated {
		if has(out, g) || has(patterns, g) {
			continue
		}
		if isPattern(g.ResourceIdentifier) {
			patterns = append(patterns, g)
			continue
		}
		own := workv1.ManifestConfigOption{}
		if i := slices.IndexFunc(author, func(a workv1.ManifestConfigOption) bool {
			return addonkit.Matches(a.ResourceIdentifier, g.ResourceIdentifier)
		}); i >= 0 {
			own = author[i]
		}
		own.ResourceIdentifier, own.FeedbackRules = g.ResourceIdentifier, mergeRules(g.FeedbackRules, own.FeedbackRules)
		out = append(out, own)
	}
	for _, a := range author {
		if has(out, a) {
			continue
		}
		var rules []workv1.FeedbackRule
		for _, g := range patterns {
			if addonkit.Matches(g.ResourceIdentifier, a.ResourceIdentifier) {
				rules = append(rules, g.FeedbackRules...)
			}
		}
		a.FeedbackRules = mergeRules(rules, a.FeedbackRules)
		out = append(out, a)
	}
	for _, g := range patterns {
		if !has(out, g) {
			out = append(out, g)
		}
	}
	return out
}

func isPattern(r workv1.ResourceIdentifier) bool { return strings.Contains(r.Namespace+r.Name, "*") }

// has reports whether list has an option for the same objects.
func has(list []workv1.ManifestConfigOption, c workv1.ManifestConfigOption) bool {
	return slices.ContainsFunc(list, func(o workv1.ManifestConfigOption) bool { return o.ResourceIdentifier == c.ResourceIdentifier })
}

// mergeRules returns at most one rule of each type; of two values with the same name the
// later one counts.
func mergeRules(lists ...[]workv1.FeedbackRule) []workv1.FeedbackRule {
	var out []workv1.FeedbackRule
	for _, r := range slices.Concat(lists...) {
		at := slices.IndexFunc(out, func(o workv1.FeedbackRule) bool { return o.Type == r.Type })
		if at < 0 {
			out, at = append(out, workv1.FeedbackRule{Type: r.Type}), len(out)
		}
		for _, path := range r.JSONPaths {
			paths := &out[at].JSONPaths
			if same := slices.IndexFunc(*paths, func(p workv1.JSONPath) bool { return p.Name == path.Name }); same >= 0 {
				(*paths)[same] = path
			} else {
				*paths = append(*paths, path)
			}
		}
	}
	return out
}

// deleteOption returns the option that orphans the marked manifests, or nil if none is
// marked.
func deleteOption(manifests []addonkit.Manifest) *workv1.DeleteOption {
	var rules []workv1.OrphaningRule
	for _, m := range manifests {
		if m.Orphaned() {
			rules = append(rules, workv1.OrphaningRule(m.Resource()))
		}
	}
	if rules == nil {
		return nil
	}
	return &workv1.DeleteOption{
		PropagationPolicy:  workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
		SelectivelyOrphans: &workv1.SelectivelyOrphans{OrphaningRules: rules},
	}
}
