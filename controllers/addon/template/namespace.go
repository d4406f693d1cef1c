// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// namespaced are kinds of Kubernetes itself that live in a namespace, by group. A
// kind that is not listed is one of them when its manifest names a namespace.
var namespaced = map[string][]string{
	"": {
		"ConfigMap", "Endpoints", "Event", "LimitRange", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController",
		"ResourceQuota", "Secret", "Service", "ServiceAccount",
	},
	"apps":                      {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"autoscaling":               {"HorizontalPodAutoscaler"},
	"batch":                     {"CronJob", "Job"},
	"coordination.k8s.io":       {"Lease"},
	"discovery.k8s.io":          {"EndpointSlice"},
	"networking.k8s.io":         {"Ingress", "NetworkPolicy"},
	"policy":                    {"PodDisruptionBudget"},
	"rbac.authorization.k8s.io": {"Role", "RoleBinding"},
}

// kinds that are moved in other ways than by their own namespace.
var (
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	bindingKinds  = []schema.GroupKind{
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	}
)

// move brings the add-on to the namespace that a configuration wants, and makes sure
// that no two manifests are the same object.
func (r *render) move() error {
	for i := range r.objects {
		o := r.objects[i]
		kind := o.GroupVersionKind().GroupKind()
		own := o.GetNamespace() != "" || slices.Contains(namespaced[kind.Group], kind.Kind)
		switch {
		case r.set.namespace == "":
			if own && o.GetNamespace() == "" {
				r.warn("%s: %s: metadata.namespace: must be set, because it lives in a namespace; name one", source(r.in.Template), o.at)
			}
			continue
		case kind == namespaceKind:
			o.SetName(r.set.namespace)
		case own:
			o.SetNamespace(r.set.namespace)
		}
		if slices.Contains(bindingKinds, kind) {
			if err := r.moveSubjects(o); err != nil {
				return err
			}
		}
	}
	return r.collapse()
}

// moveSubjects moves the accounts that a binding is for; users and groups live
// nowhere.
func (r *render) moveSubjects(o object) error {
	subjects, err := r.listOf(o, o.Object, "", "subjects")
	if err != nil {
		return err
	}
	for _, s := range subjects {
		if s["kind"] == "ServiceAccount" {
			s["namespace"] = r.set.namespace
		}
	}
	return nil
}

// collapse keeps the first of several manifests that are the same object. That is
// usual for namespaces that became one; others must say the same.
func (r *render) collapse() error {
	type identity struct {
		kind            schema.GroupKind
		namespace, name string
	}
	first := map[identity]object{}
	kept := r.objects[:0:0]
	for _, o := range r.objects {
		id := identity{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
		other, taken := first[id]
		switch {
		case !taken:
			first[id] = o
			kept = append(kept, o)
		case equality.Semantic.DeepEqual(o.Object, other.Object) || (id.kind == namespaceKind && r.set.namespace != ""):
		case o.at == "":
			return r.fault(other, "metadata.name", "is the name of the object that the hub makes for the CA bundle of the proxy", "use another name")
		default:
			number, _, _ := strings.Cut(other.at, " ")
			return r.fault(
				o, "metadata.name",
				fmt.Sprintf("is, as %s, that of %s, with another content", called(o.Unstructured), number),
				"use another name, or remove one of them",
			)
		}
	}
	r.objects = kept
	return nil
}

// manifestConfigs are those of the template, for the names that the manifests have
// now.
func (r *render) manifestConfigs() []workv1.ManifestConfigOption {
	var out []workv1.ManifestConfigOption
	for i, c := range r.in.Template.Spec.AgentSpec.ManifestConfigs {
		c = *c.DeepCopy()
		id := &c.ResourceIdentifier
		at := fmt.Sprintf("spec.agentSpec.manifestConfigs[%d].resourceIdentifier", i)
		id.Namespace, id.Name = r.named(at, id.Namespace), r.named(at, id.Name)
		if r.set.namespace != "" && id.Namespace != "" {
			id.Namespace = r.set.namespace
		}
		if r.set.namespace != "" && id.Group == "" && id.Resource == "namespaces" {
			id.Name = r.set.namespace
		}
		out = append(out, c)
	}
	return out
}

// named is a name with its variables replaced.
func (r *render) named(at, name string) string {
	s := substitution{values: r.values.all, left: len(name) + maxName}
	out, err := s.text(name)
	if err != nil {
		return name
	}
	for _, tag := range s.unknown {
		r.unknown(at, tag)
	}
	return out
}

// maxName bounds how much longer values may make a name.
const maxName = 253
