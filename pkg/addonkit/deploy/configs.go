// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// MergeConfigs puts the configurations of an author to those that follow from the
// health of an add-on. Those of one object become one: feedback rules of both, and
// all else as the author says. Contract: addon.md 5.4.
func MergeConfigs(generated, author []workv1.ManifestConfigOption) []workv1.ManifestConfigOption {
	var out []workv1.ManifestConfigOption
	for _, c := range slices.Concat(generated, author) {
		at := slices.IndexFunc(out, func(o workv1.ManifestConfigOption) bool { return o.ResourceIdentifier == c.ResourceIdentifier })
		if at < 0 {
			c.FeedbackRules = mergeRules(nil, c.FeedbackRules)
			out = append(out, c)
			continue
		}
		merged := &out[at]
		merged.FeedbackRules = mergeRules(merged.FeedbackRules, c.FeedbackRules)
		if c.UpdateStrategy != nil {
			merged.UpdateStrategy = c.UpdateStrategy
		}
		if c.FeedbackScrapeType != "" {
			merged.FeedbackScrapeType = c.FeedbackScrapeType
		}
		if c.ConditionRules != nil {
			merged.ConditionRules = c.ConditionRules
		}
	}
	return out
}

// mergeRules is one rule of each type at most; of two values with one name the later
// one counts.
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

// deleteOption leaves behind what asks for it; nil when nothing does. Contract:
// addon.md 5.4.
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
