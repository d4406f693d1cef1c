// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// product is what one bundle installs.
type product struct {
	// name of the package, and title and texts for people.
	name, title, summary, description string
	// version without its "v", and image with its tag.
	version, image string
	// namespace is where the bundle is to be installed; minKube is the oldest Kubernetes.
	namespace, minKube string
	// objects are those of the installer.
	objects []*unstructured.Unstructured
}

func products(version string) ([]product, error) {
	hubs, err := hub.Objects(hub.Options{Version: version})
	if err != nil {
		return nil, err
	}
	image := "ghcr.io/kubectl-ocm/ocm-agent:" + version
	agents, err := agent.Objects(agent.Options{Image: image, ClusterName: "cluster1"})
	if err != nil {
		return nil, err
	}
	version = strings.TrimPrefix(version, "v")
	return []product{{
		name: hub.Name, title: "Cluster Manager", version: version, image: "ghcr.io/kubectl-ocm/ocm-hub:v" + version,
		summary: "Makes a cluster an Open Cluster Management hub, run by one light process",
		description: "Clusters register with the hub, which delivers workloads to them, selects clusters for them by placements, and rolls out add-ons.\n\n" +
			"Create the ClusterManager `cluster-manager` after the installation. Before you uninstall the operator, let the clusters leave, " +
			"delete the ClusterManager and wait until it is gone.",
		namespace: hub.Namespace, minKube: "1.28.0", objects: hubs,
	}, {
		name: operatorv1.DefaultKlusterletName, title: "Klusterlet", version: version, image: image,
		summary: "Joins a cluster to an Open Cluster Management hub, run by one light process",
		description: "The agent registers the cluster on a hub, and applies what the hub assigns to it.\n\n" +
			"Create the Secret `bootstrap-hub-kubeconfig` in the namespace of the operator, then a Klusterlet with the name that the cluster is to have. " +
			"Before you uninstall the operator, delete the Klusterlet and wait until it is gone.",
		namespace: operatorv1.NamespaceAgent, minKube: "1.22.0", objects: agents,
	}}, nil
}

// parts are the objects of a product by who creates them.
type parts struct {
	deployment, definition, sample *unstructured.Unstructured
	// rules and clusterRules are those that the manager grants to the process by names of
	// its own.
	rules, clusterRules []rbacv1.PolicyRule
	// manifests are applied as they are.
	manifests []*unstructured.Unstructured
}

// split divides the objects. The manager creates neither namespaces nor what lies in another
// one than its own; the process creates that once it runs. Many releases of the manager refuse
// a bundle with a NetworkPolicy; the hub's only limits ports.
func (p product) split() (parts, error) {
	var out parts
	roles := map[string]*unstructured.Unstructured{}
	for _, o := range p.objects {
		switch o.GetKind() {
		case "Deployment":
			out.deployment = o
		case "CustomResourceDefinition":
			out.definition = o
		case "ClusterRole", "Role":
			roles[o.GetKind()+"/"+o.GetName()] = o
		case "ClusterManager", "Klusterlet":
			out.sample = o
		}
	}
	if out.deployment == nil || out.definition == nil || out.sample == nil {
		return out, fmt.Errorf("no Deployment, definition or custom resource among %d objects", len(p.objects))
	}
	taken, err := p.grant(&out, roles)
	if err != nil {
		return out, err
	}
	taken[out.deployment], taken[out.definition], taken[out.sample] = true, true, true
	for _, o := range p.objects {
		own := o.GetKind() == "ServiceAccount" && o.GetName() == out.account()
		if !own && !p.isElsewhere(o) && !taken[o] {
			out.manifests = append(out.manifests, o)
		}
	}
	return out, nil
}

// account is that of the process.
func (p parts) account() string {
	name, _, _ := unstructured.NestedString(p.deployment.Object, "spec", "template", "spec", "serviceAccountName")
	return name
}

// isElsewhere reports whether a bundle cannot contain an object.
func (p product) isElsewhere(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Namespace" || o.GetKind() == "NetworkPolicy" || o.GetNamespace() != "" && o.GetNamespace() != p.namespace
}

// grant moves to out the rules of the roles that only the process has, and returns those roles
// with their bindings. A role that others select by a label is needed as it is.
func (p product) grant(out *parts, roles map[string]*unstructured.Unstructured) (map[*unstructured.Unstructured]bool, error) {
	granted := map[*unstructured.Unstructured]bool{}
	to := []rbacv1.Subject{{Kind: "ServiceAccount", Name: out.account(), Namespace: p.namespace}}
	for _, o := range p.objects {
		if !strings.HasSuffix(o.GetKind(), "RoleBinding") || p.isElsewhere(o) {
			continue
		}
		binding, err := typed.FromUnstructured[rbacv1.ClusterRoleBinding](o)
		if err != nil {
			return nil, err
		}
		role := roles[binding.RoleRef.Kind+"/"+binding.RoleRef.Name]
		if !slices.Equal(binding.Subjects, to) || role == nil || role.Object["aggregationRule"] != nil || len(role.GetLabels()) > 1 {
			continue
		}
		rules, err := typed.FromUnstructured[rbacv1.ClusterRole](role)
		if err != nil {
			return nil, err
		}
		if o.GetKind() == "RoleBinding" {
			out.rules = append(out.rules, rules.Rules...)
		} else {
			out.clusterRules = append(out.clusterRules, rules.Rules...)
		}
		granted[o], granted[role] = true, true
	}
	return granted, nil
}

// files returns the content of a bundle by path.
func (p product) files() (map[string][]byte, error) {
	parts, err := p.split()
	if err != nil {
		return nil, err
	}
	version, err := p.serviceVersion(parts)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{"bundle.Dockerfile": []byte(p.dockerfile())}
	put := func(name string, content any) error {
		text, err := yaml.Marshal(content)
		out[name] = append([]byte("# SPDX-License-Identifier: Apache-2.0\n"), text...)
		return err
	}
	if err := put("manifests/"+p.name+".clusterserviceversion.yaml", version); err != nil {
		return nil, err
	}
	for _, o := range append(parts.manifests, parts.definition) {
		o = o.DeepCopy()
		o.SetNamespace("") // that of the installation
		name := strings.ToLower(o.GetKind()) + "_" + strings.ReplaceAll(o.GetName(), ":", "_")
		if err := put("manifests/"+name+".yaml", o.Object); err != nil {
			return nil, err
		}
	}
	return out, put("metadata/annotations.yaml", map[string]any{"annotations": p.annotations()})
}

// annotations are the labels of the image of the bundle.
func (p product) annotations() map[string]string {
	return map[string]string{
		"operators.operatorframework.io.bundle.mediatype.v1":       "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1":       "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1":        "metadata/",
		"operators.operatorframework.io.bundle.package.v1":         p.name,
		"operators.operatorframework.io.bundle.channels.v1":        channel,
		"operators.operatorframework.io.bundle.channel.default.v1": channel,
	}
}

func (p product) dockerfile() string {
	var out strings.Builder
	out.WriteString("# SPDX-License-Identifier: Apache-2.0\nFROM scratch\n")
	annotations := p.annotations()
	for _, key := range sortedKeys(annotations) {
		fmt.Fprintf(&out, "LABEL %s=%s\n", key, annotations[key])
	}
	out.WriteString("COPY manifests /manifests/\nCOPY metadata /metadata/\n")
	return out.String()
}
