// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// Names of the values that FromSpec returns, besides those of customized variables.
const (
	// NodeSelector is a map of labels.
	NodeSelector = "NodeSelector"
	// Tolerations is a list of tolerations.
	Tolerations = "Tolerations"
	// HTTPProxy, HTTPSProxy and NoProxy are texts.
	HTTPProxy  = "HTTPProxy"
	HTTPSProxy = "HTTPSProxy"
	NoProxy    = "NoProxy"
	// ProxyCABundle is in base64, ready for binaryData of a ConfigMap.
	ProxyCABundle = "ProxyCABundle"
	// ResourceRequirements is a list of maps with ContainerIDRegex and Resources; the last
	// one whose expression matches kind:name:container counts.
	ResourceRequirements = "ResourceRequirements"
)

// Keys of an entry of ResourceRequirements.
const (
	ContainerIDRegex = "ContainerIDRegex"
	Resources        = "Resources"
)

// FromSpec returns the values of a configuration. All names are present, with an empty
// value where the configuration is silent, so that templates can test them. A customized
// variable with one of these names is ignored. An error names the field.
func FromSpec(spec addonv1alpha1.AddOnDeploymentConfigSpec) (map[string]any, error) {
	out := map[string]any{}
	for _, v := range spec.CustomizedVariables {
		out[v.Name] = v.Value
	}
	requirements := []any{}
	for i, r := range spec.ResourceRequirements {
		expression, ok := containerRegex(r.ContainerID)
		if !ok {
			return nil, fmt.Errorf("AddOnDeploymentConfig: spec.resourceRequirements[%d].containerID: %q is not a kind and two regular "+
				"expressions, separated by colons; use for example deployments:my-agent:.+", i, r.ContainerID)
		}
		resources, err := plain(r.Resources)
		if err != nil {
			return nil, err
		}
		requirements = append(requirements, map[string]any{ContainerIDRegex: expression, Resources: resources})
	}
	placement := ptr.Deref(spec.NodePlacement, addonv1alpha1.NodePlacement{})
	selector, tolerations := map[string]any{}, []any{}
	for key, value := range placement.NodeSelector {
		selector[key] = value
	}
	for _, t := range placement.Tolerations {
		value, err := plain(t)
		if err != nil {
			return nil, err
		}
		tolerations = append(tolerations, value)
	}
	out[NodeSelector], out[Tolerations], out[ResourceRequirements] = selector, tolerations, requirements
	out[HTTPProxy], out[HTTPSProxy], out[NoProxy] = spec.ProxyConfig.HTTPProxy, spec.ProxyConfig.HTTPSProxy, spec.ProxyConfig.NoProxy
	out[ProxyCABundle] = base64.StdEncoding.EncodeToString(spec.ProxyConfig.CABundle)
	return out, nil
}

// plain converts a Go value to plain JSON types.
func plain(value any) (out any, err error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing a setting as JSON: %w", err)
	}
	return out, json.Unmarshal(raw, &out)
}

// containerRegex joins the three parts of a container's id into one expression; each part
// matches a whole name. Expressions may contain colons, so the second part ends where both
// it and the rest are valid expressions.
func containerRegex(id string) (string, bool) {
	kind, names, _ := strings.Cut(id, ":")
	if kind == "*" {
		kind = "[^:]+"
	}
	for end, sign := range names {
		if sign != ':' {
			continue
		}
		name, container := every(names[:end]), every(names[end+1:])
		if name == "" || container == "" || !valid(name) || !valid(container) {
			continue
		}
		return "^" + kind + ":(?:" + name + "):(?:" + container + ")$", kind != ""
	}
	return "", false
}

// every returns the expression, where a lone * stands for every name.
func every(expression string) string {
	if expression == "*" {
		return ".*"
	}
	return expression
}

func valid(expression string) bool {
	_, err := regexp.Compile(expression)
	return err == nil
}
