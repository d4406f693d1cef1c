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

// namespaced lists the namespaced kinds of Kubernetes itself, by group. A kind that is not
// listed counts as namespaced if its manifest names a namespace.
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

// Kinds that are moved in other ways than by their own namespace.
var (
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	bindingKinds  = []schema.GroupKind{
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	}
)

// move moves the add-on to the namespace that a configuration sets, and ensures that no two
// manifests are the same object.
func (r *render) move() error {
	for i := range r.objects {
		o := r.objects[i]
		kind := o.GroupVersionKind().GroupKind()
		own := o.GetNamespace() != "" || slices.Contains(namespaced[kind.Group], kind.Kind)
		switch {
		case r.set.namespace == "":
			if own && o.GetNamespace() == "" {
				r.warn("%s: %s: metadata.namespace: must be set, because the kind is namespaced; name one", source(r.in.Template), o.at)
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

// moveSubjects moves the ServiceAccounts of a binding; users and groups have no namespace.
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

// collapse keeps the first of several manifests of the same object. That is usual for
// namespaces that became one; other manifests must be equal.
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

// manifestConfigs returns those of the template, with the final names of the manifests.
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

// named returns a name with its variables replaced.
func (r *render) named(at, name string) string {
	s := substitution{values: r.values.all, left: len(name) + maxName}
	out, err := s.replaceText(name)
	if err != nil {
		return name
	}
	for _, tag := range s.unknown {
		r.warnUnknown(at, tag)
	}
	return out
}

// maxName limits how long values may make a name.
const maxName = 253
