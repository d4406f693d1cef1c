// SPDX-License-Identifier: Apache-2.0

package values

import (
	"context"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// Global is a Func like Values, but with the names that Helm charts use: see
// GlobalFromSpec.
func (c Configs) Global(ctx context.Context, i addonkit.Instance) (map[string]any, error) {
	configs, err := c.Read(ctx, i)
	if err != nil || len(configs) == 0 {
		return nil, err
	}
	return GlobalFromSpec(Effective(configs))
}

// GlobalFromSpec returns the values of a configuration under other names than FromSpec:
// customized variables and tolerations under their own, and in "global", which all
// subcharts see, nodeSelector, proxyConfig with HTTP_PROXY, HTTPS_PROXY, NO_PROXY and
// PROXY_CA_BUNDLE, and resourceRequirements, a list of containerIDRegex and resources. What
// the configuration leaves open is left to the chart. An error names the field.
func GlobalFromSpec(spec addonv1alpha1.AddOnDeploymentConfigSpec) (map[string]any, error) {
	variables := spec.CustomizedVariables
	spec.CustomizedVariables = nil
	flat, err := FromSpec(spec)
	if err != nil {
		return nil, err
	}
	out, global := map[string]any{}, map[string]any{}
	for _, v := range variables {
		out[v.Name] = v.Value
	}
	if list := flat[Tolerations].([]any); len(list) > 0 {
		out["tolerations"] = list
	}
	if selector := flat[NodeSelector].(map[string]any); len(selector) > 0 {
		global["nodeSelector"] = selector
	}
	proxy := map[string]any{}
	for name, from := range map[string]string{"HTTP_PROXY": HTTPProxy, "HTTPS_PROXY": HTTPSProxy, "NO_PROXY": NoProxy, "PROXY_CA_BUNDLE": ProxyCABundle} {
		if value := flat[from]; value != "" {
			proxy[name] = value
		}
	}
	if len(proxy) > 0 {
		global["proxyConfig"] = proxy
	}
	requirements := []any{}
	for _, r := range flat[ResourceRequirements].([]any) {
		r := r.(map[string]any)
		requirements = append(requirements, map[string]any{"containerIDRegex": r[ContainerIDRegex], "resources": r[Resources]})
	}
	if len(requirements) > 0 {
		global["resourceRequirements"] = requirements
	}
	if len(global) > 0 {
		out["global"] = global
	}
	return out, nil
}
