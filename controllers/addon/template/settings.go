// SPDX-License-Identifier: Apache-2.0

package template

import (
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// settings is the merge of the AddOnDeploymentConfigs of a cluster and of the cluster itself.
type settings struct {
	// namespace is where the add-on is moved to, empty to leave it where it is; namespaceOf
	// names the object that sets it.
	namespace, namespaceOf string
	variables              map[string]string
	nodeSelector           map[string]any
	tolerations            []any
	// registries are tried in order; the last one that matches counts.
	registries []addonv1alpha1.ImageMirror
	proxy      addonv1alpha1.ProxyConfig
	// requirements are tried in order; the last one that matches counts.
	requirements []requirement
}

// settings merges the configurations; the first one takes precedence.
func (r *render) settings() (err error) {
	set := &r.set
	set.variables = map[string]string{}
	for _, c := range slices.Backward(r.in.Configs) {
		for _, v := range c.Spec.CustomizedVariables {
			r.checkVariable(c, v.Name)
		}
		if !utf8.Valid(c.Spec.ProxyConfig.CABundle) {
			return &Error{Source: configSource(c), Field: "spec.proxyConfig.caBundle", Problem: "is not text", Fix: "encode PEM certificates by base64, once"}
		}
		wanted, err := requirementsOf(c)
		if err != nil {
			return err
		}
		set.requirements = append(set.requirements, wanted...)
	}
	if len(r.in.Configs) > 0 {
		all := values.Effective(r.in.Configs)
		set.namespaceOf, set.namespace = configSource(r.in.Configs[0]), *all.AgentInstallNamespace
		for _, v := range all.CustomizedVariables {
			set.variables[v.Name] = v.Value
		}
		set.proxy, set.registries = all.ProxyConfig, all.Registries
		flat, err := values.FromSpec(addonv1alpha1.AddOnDeploymentConfigSpec{NodePlacement: all.NodePlacement})
		if err != nil {
			return err
		}
		set.nodeSelector, set.tolerations = flat[values.NodeSelector].(map[string]any), flat[values.Tolerations].([]any)
	}
	if len(set.registries) == 0 {
		set.registries, err = registriesOf(r.in.Cluster)
	}
	return err
}

// checkVariable warns about a variable that has no effect.
func (r *render) checkVariable(c *addonv1alpha1.AddOnDeploymentConfig, name string) {
	if name == variableClusterName || (name == variableInstallNamespace && (c.Spec.AgentInstallNamespace == nil || *c.Spec.AgentInstallNamespace != "")) {
		r.warn("%s: spec.customizedVariables[%s]: the hub sets this variable itself; remove it", configSource(c), name)
	}
}

func configSource(c *addonv1alpha1.AddOnDeploymentConfig) string {
	return "AddOnDeploymentConfig " + c.Namespace + "/" + c.Name
}

// registriesOf returns the registries that the annotation of a cluster names.
func registriesOf(cluster *clusterv1.ManagedCluster) ([]addonv1alpha1.ImageMirror, error) {
	text := cluster.Annotations[clusterv1.AnnotationImageRegistries]
	if text == "" {
		return nil, nil
	}
	var value struct {
		Registries []addonv1alpha1.ImageMirror `json:"registries"`
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, &Error{
			Source: "ManagedCluster " + cluster.Name, Field: "metadata.annotations[" + clusterv1.AnnotationImageRegistries + "]",
			Problem: "is not a JSON object with registries", Fix: `write {"registries":[{"source":"quay.io/a","mirror":"registry.local/a"}]}`,
		}
	}
	return value.Registries, nil
}

// proxyEnv returns the environment variables that set the proxy.
func proxyEnv(p addonv1alpha1.ProxyConfig) (out []variable) {
	add := func(value string, names ...string) {
		for _, name := range names {
			if value != "" {
				out = append(out, variable{name, value})
			}
		}
	}
	add(p.HTTPProxy, "HTTP_PROXY", "http_proxy")
	add(p.HTTPSProxy, "HTTPS_PROXY", "https_proxy")
	if len(out) > 0 {
		add(p.NoProxy, "NO_PROXY", "no_proxy")
	}
	if len(p.CABundle) > 0 {
		add(proxyCAFolder+"/"+proxyCAKey, "CA_BUNDLE_FILE_PATH")
	}
	return out
}
