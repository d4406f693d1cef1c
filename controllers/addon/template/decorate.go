// SPDX-License-Identifier: Apache-2.0

package template

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// Locations of the agent's files.
const (
	mountFolder         = "/managed"
	hubKubeconfigFolder = mountFolder + "/hub-kubeconfig"
	proxyCAFolder       = mountFolder + "/proxy-ca"
	proxyCAKey          = "ca-bundle.crt"
	proxyCAVolume       = "proxy-ca-bundle"
	proxyCASuffix       = "-proxy-ca"
)

// decorate adapts all workloads to the cluster.
func (r *render) decorate() error {
	r.out.Namespace = r.installNamespace()
	namespace, volumes := r.out.Namespace, r.volumes()
	namespaces := map[string]bool{namespace: true}
	for _, o := range r.objects {
		w, ok, err := r.workload(o)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		in := o.GetNamespace()
		if r.set.namespace != "" || in == "" {
			in = namespace
		}
		if w.kind.classic {
			namespaces[in] = true // of pods that read the CA bundle
		}
		if w.kind.classic || in == namespace {
			if err := r.mount(w, volumes); err != nil {
				return err
			}
		}
		r.setNodes(w)
		r.setImages(w)
		r.setResources(w)
		if err := r.setEnv(w, r.values.env); err != nil {
			return err
		}
		if err := r.setProxy(w); err != nil {
			return err
		}
	}
	if len(r.set.proxy.CABundle) == 0 {
		return nil
	}
	for _, in := range slices.Sorted(maps.Keys(namespaces)) {
		r.objects = append(r.objects, object{Unstructured: r.proxyCA(in)})
	}
	return nil
}

// setEnv sets variables in every container, and replaces those of the same name.
func (r *render) setEnv(w workload, variables []variable) error {
	for _, c := range w.containers {
		for _, v := range variables {
			if err := r.putItem(w.object, c, envList, map[string]any{"name": v.name, "value": v.value}); err != nil {
				return err
			}
		}
	}
	return nil
}

// volume is a directory of files for every container.
type volume struct {
	name, folder string
	// source is the value of the volume's field kind, which defines where the files come
	// from.
	kind   string
	source map[string]any
}

// volumes returns volumes with the credentials of the agent.
func (r *render) volumes() (out []volume) {
	for _, g := range r.out.Registrations {
		out = append(out, volume{g.volume(), g.folder(), "secret", map[string]any{"secretName": g.secret(r.in.AddOn.Name)}})
	}
	return out
}

// mount mounts the volumes in every container. A volume or a mount of the template with the
// same name or path stays.
func (r *render) mount(w workload, volumes []volume) error {
	pod := container{fields: w.pod, at: strings.Join(w.kind.path, ".")}
	for _, v := range volumes {
		if err := r.putItem(w.object, pod, volumeList, map[string]any{"name": v.name, v.kind: maps.Clone(v.source)}); err != nil {
			return err
		}
		for _, c := range w.containers {
			if err := r.putItem(w.object, c, mountList, map[string]any{"name": v.name, "mountPath": v.folder}); err != nil {
				return err
			}
		}
	}
	return nil
}

// setNodes sets on which nodes the pods run.
func (r *render) setNodes(w workload) {
	if len(r.set.nodeSelector) > 0 {
		w.pod["nodeSelector"] = runtime.DeepCopyJSON(r.set.nodeSelector)
	}
	if len(r.set.tolerations) > 0 {
		w.pod["tolerations"] = runtime.DeepCopyJSONValue(r.set.tolerations)
	}
}

// setImages sets the registries of images.
func (r *render) setImages(w workload) {
	for _, c := range w.containers {
		if image, ok := c.fields["image"].(string); ok && image != "" {
			c.fields["image"] = values.Mirrored(image, r.set.registries)
		}
	}
}

// setProxy sets the proxy and its CA bundle in containers of Deployments and DaemonSets. A
// Job that runs before the add-on is removed works on the cluster itself: if it used a proxy,
// or waited for a bundle that is removed with the rest, it would fail and block the removal.
func (r *render) setProxy(w workload) error {
	if !w.kind.classic {
		return nil
	}
	if err := r.setEnv(w, proxyEnv(r.set.proxy)); err != nil || len(r.set.proxy.CABundle) == 0 {
		return err
	}
	return r.mount(w, []volume{{proxyCAVolume, proxyCAFolder, "configMap", map[string]any{"name": r.in.AddOn.Name + proxyCASuffix}}})
}

// proxyCA returns the ConfigMap with the proxy's CA bundle for the pods of a namespace.
func (r *render) proxyCA(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": r.in.AddOn.Name + proxyCASuffix, "namespace": namespace},
		"data":     map[string]any{proxyCAKey: string(r.set.proxy.CABundle)},
	}}
}

// setResources sets the resource requests and limits of containers.
func (r *render) setResources(w workload) {
	for _, c := range w.containers {
		name, _ := c.fields["name"].(string)
		for _, q := range slices.Backward(r.set.requirements) {
			if q.container.MatchString(w.kind.resource + ":" + w.GetName() + ":" + name) {
				c.fields["resources"] = runtime.DeepCopyJSONValue(q.resources)
				break
			}
		}
	}
}

// installNamespace returns where the agent runs: the namespace that a configuration sets, or
// that of the first Deployment, otherwise of the first DaemonSet.
func (r *render) installNamespace() string {
	own := addonv1alpha1.DefaultInstallNamespace
	for _, kind := range []string{"DaemonSet", "Deployment"} {
		for _, o := range slices.Backward(r.objects) {
			if gk := o.GroupVersionKind().GroupKind(); gk.Group == "apps" && gk.Kind == kind && o.GetNamespace() != "" {
				own = o.GetNamespace()
			}
		}
	}
	if r.set.namespace == "" {
		return own
	}
	if r.set.namespace == addonv1alpha1.DefaultInstallNamespace && own != r.set.namespace {
		r.warn("%s: spec.agentInstallNamespace: moves the add-on from namespace %s to %s, "+
			"the default of the API for an unset field; write \"\" to leave it in %s",
			r.set.namespaceOf, own, r.set.namespace, own)
	}
	return r.set.namespace
}
