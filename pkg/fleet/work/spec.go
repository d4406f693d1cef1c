// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// updateStrategies are the names of the update strategies of a work.
var updateStrategies = map[string]workv1.UpdateStrategyType{
	"update": workv1.UpdateStrategyTypeUpdate, "ssa": workv1.UpdateStrategyTypeServerSideApply,
	"create-only": workv1.UpdateStrategyTypeCreateOnly, "readonly": workv1.UpdateStrategyTypeReadOnly,
}

// UpdateStrategies returns the values of Options.UpdateStrategy.
func UpdateStrategies() []string { return slices.Sorted(maps.Keys(updateStrategies)) }

// check checks the name and the options that become the spec.
func (o *Options) check() error {
	if problems := validation.IsDNS1123Subdomain(o.Name); len(problems) > 0 {
		return fleet.Misuse(fmt.Sprintf("%q cannot be the name of a work", o.Name), problems[0], fleet.Advice("for example web"))
	}
	if _, ok := updateStrategies[o.UpdateStrategy]; !ok && o.UpdateStrategy != "" {
		return fleet.Misuse(fmt.Sprintf("there is no update strategy %q", o.UpdateStrategy), "",
			fleet.Advice("use one of "+strings.Join(UpdateStrategies(), ", ")))
	}
	if _, _, ok := o.executor(); !ok && o.Executor != "" {
		return fleet.Misuse(fmt.Sprintf("wrong executor %q", o.Executor), "", fleet.Advice("name a ServiceAccount of the managed cluster as NAMESPACE/NAME"))
	}
	seen := map[string]bool{}
	for _, rule := range o.Feedback {
		name, path, _ := strings.Cut(rule, "=")
		if name == "" || !strings.HasPrefix(path, ".") {
			return fleet.Misuse(fmt.Sprintf("wrong feedback %q", rule), "", fleet.Advice("give it as NAME=JSONPATH, for example ready=.status.readyReplicas"))
		}
		if seen[name] {
			return fleet.Misuse(fmt.Sprintf("feedback %q is given twice", name), "", fleet.Advice("give each value a name of its own"))
		}
		seen[name] = true
	}
	if _, ok := rollouts[o.Rollout]; !ok {
		return fleet.Misuse(fmt.Sprintf("there is no rollout %q", o.Rollout), "", fleet.Advice("use all, progressive or per-group"))
	}
	if o.MaxConcurrency == "" {
		return nil
	}
	if o.Rollout != "progressive" {
		return fleet.Misuse("a maximum concurrency belongs to a progressive rollout", "", RollOutProgressively.With())
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(o.MaxConcurrency, "%")); err != nil || n < 1 {
		return fleet.Misuse(fmt.Sprintf("wrong concurrency %q", o.MaxConcurrency), "",
			fleet.Advice("give a number of clusters or a percentage, for example 5 or 25%"))
	}
	return nil
}

// spec returns the spec of the work.
func (o *Options) spec() map[string]any {
	manifests := make([]any, 0, len(o.Manifests))
	for _, m := range o.Manifests {
		manifests = append(manifests, m.DeepCopy().Object)
	}
	spec := map[string]any{"workload": map[string]any{"manifests": manifests}}
	if o.Orphan {
		spec["deleteOption"] = map[string]any{"propagationPolicy": "Orphan"}
	}
	if namespace, name, ok := o.executor(); ok {
		spec["executor"] = map[string]any{"subject": map[string]any{"type": string(workv1.ExecutorSubjectTypeServiceAccount),
			"serviceAccount": map[string]any{"namespace": namespace, "name": name}}}
	}
	if configs := o.configs(); len(configs) > 0 {
		spec["manifestConfigs"] = configs
	}
	return spec
}

// configs returns the update strategy and the feedback rules, once for each resource of the
// manifests. The plural of a kind is assumed to be regular, because the hub may not serve it.
func (o *Options) configs() []any {
	if o.UpdateStrategy == "" && len(o.Feedback) == 0 {
		return nil
	}
	kinds := map[schema.GroupResource]bool{}
	for _, m := range o.Manifests {
		plural, _ := apimeta.UnsafeGuessKindToResource(m.GroupVersionKind())
		kinds[plural.GroupResource()] = true
	}
	var paths []any
	for _, rule := range o.Feedback {
		name, path, _ := strings.Cut(rule, "=")
		paths = append(paths, map[string]any{"name": name, "path": path})
	}
	var out []any
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }) {
		config := map[string]any{"resourceIdentifier": map[string]any{"group": kind.Group, "resource": kind.Resource, "namespace": "*", "name": "*"}}
		if o.UpdateStrategy != "" {
			config["updateStrategy"] = map[string]any{"type": string(updateStrategies[o.UpdateStrategy])}
		}
		if len(paths) > 0 {
			config["feedbackRules"] = []any{map[string]any{"type": string(workv1.FeedbackRuleTypeJSONPaths), "jsonPaths": paths}}
		}
		out = append(out, config)
	}
	return out
}
