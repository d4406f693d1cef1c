// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"slices"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// Defaults returns the default configurations of an add-on. A supported kind without a
// default contributes none.
func Defaults(spec addonv1alpha1.ClusterManagementAddOnSpec) []addonv1alpha1.AddOnConfig {
	var out []addonv1alpha1.AddOnConfig
	for _, kind := range spec.SupportedConfigs {
		if d := kind.DefaultConfig; d != nil && isObjectName(d.Name) {
			out = append(out, addonv1alpha1.AddOnConfig{ConfigGroupResource: kind.ConfigGroupResource, ConfigReferent: *d})
		}
	}
	return out
}

// isObjectName reports whether a name is that of an object.
func isObjectName(name string) bool { return name != "" && name != addonv1alpha1.ReservedNoDefault }

// Effective merges several sources, the strongest first: for each kind, it returns the list
// of the first source that names the kind, in the order of that source and without
// duplicates. Kinds are sorted by group and resource.
func Effective(sources ...[]addonv1alpha1.AddOnConfig) []addonv1alpha1.AddOnConfig {
	var out []addonv1alpha1.AddOnConfig
	taken := map[addonv1alpha1.ConfigGroupResource]int{}
	for i, source := range sources {
		for _, c := range source {
			if !isObjectName(c.Name) {
				continue
			}
			by, known := taken[c.ConfigGroupResource]
			if !known {
				by, taken[c.ConfigGroupResource] = i, i
			}
			if by == i && !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b addonv1alpha1.AddOnConfig) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return out
}

// Overridden reports whether the cluster's own list names configurations of the kind, which
// then replace all others of that kind.
func Overridden(own []addonv1alpha1.AddOnConfig, kind addonv1alpha1.ConfigGroupResource) bool {
	return slices.ContainsFunc(own, func(c addonv1alpha1.AddOnConfig) bool {
		return c.ConfigGroupResource == kind && isObjectName(c.Name)
	})
}
