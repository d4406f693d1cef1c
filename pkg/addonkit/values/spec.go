// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// Names of the values that FromSpec gives, beside those of customized variables.
const (
	// NodeSelector is a map of labels.
	NodeSelector = "NodeSelector"
	// Tolerations is a list of tolerations.
	Tolerations = "Tolerations"
	// HTTPProxy, HTTPSProxy and NoProxy are texts.
	HTTPProxy  = "HTTPProxy"
	HTTPSProxy = "HTTPSProxy"
	NoProxy    = "NoProxy"
	// ProxyCABundle is in base64, as binaryData of a ConfigMap takes it.
	ProxyCABundle = "ProxyCABundle"
	// ResourceRequirements is a list of maps with ContainerIDRegex and Resources; of
	// those whose expression fits kind:name:container the last one counts.
	ResourceRequirements = "ResourceRequirements"
)

// Keys of an entry of ResourceRequirements.
const (
	ContainerIDRegex = "ContainerIDRegex"
	Resources        = "Resources"
)

// FromSpec gives the values of a configuration. Each of the names is there, with
// something empty where the configuration is silent, so that templates can ask for it;
// a customized variable of one of the names does not count. An error has the field.
func FromSpec(spec addonv1alpha1.AddOnDeploymentConfigSpec) (map[string]any, error) {
	out := map[string]any{}
	for _, v := range spec.CustomizedVariables {
		out[v.Name] = v.Value
	}
	requirements := []any{}
	for i, r := range spec.ResourceRequirements {
		expression, ok := containerRegex(r.ContainerID)
		if !ok {
			return nil, fmt.Errorf(
				"AddOnDeploymentConfig: spec.resourceRequirements[%d].containerID: %q is not a kind and two regular expressions, with colons between them; write for example deployments:my-agent:.+",
				i, r.ContainerID,
			)
		}
		resources, err := plain(r.Resources)
		if err != nil {
			return nil, err
		}
		requirements = append(requirements, map[string]any{ContainerIDRegex: expression, Resources: resources})
	}
	var placement addonv1alpha1.NodePlacement
	if spec.NodePlacement != nil {
		placement = *spec.NodePlacement
	}
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

// plain is a Go value as JSON has it.
func plain(value any) (out any, err error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing a setting as JSON: %w", err)
	}
	return out, json.Unmarshal(raw, &out)
}

// containerRegex makes one expression of the three parts of a container's id, each of
// which stands for a whole name. Expressions may have colons themselves, so the second
// part ends where it and the rest are expressions both.
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

// every is an expression, for which * alone stands for every name.
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
