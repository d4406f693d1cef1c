// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Input is everything that a rendering depends on. Nothing of it is changed.
type Input struct {
	// Template is the one that the cluster has, by its resolved configuration.
	Template *addonv1alpha1.AddOnTemplate
	// AddOn is the add-on on the cluster.
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Cluster is the managed cluster.
	Cluster *clusterv1.ManagedCluster
	// Configs are the AddOnDeploymentConfigs of the cluster, the strongest first.
	// What one leaves open is taken from the next; only the namespace is always that
	// of the first, because the API gives each of them one.
	Configs []*addonv1alpha1.AddOnDeploymentConfig
}

// Result is what a cluster gets of a template.
type Result struct {
	// Manifests are the objects for the managed cluster in the order of the template,
	// hooks among them; what is made beside them stands last.
	Manifests []*unstructured.Unstructured
	// ManifestConfigs are those of the template, with the names that the manifests
	// have now.
	ManifestConfigs []workv1.ManifestConfigOption
	// Registrations are the credentials that the agent needs.
	Registrations []Registration
	// Namespace is the one that the agent runs in, where its credentials are kept.
	Namespace string
	// Warnings are what is probably not meant so, each with the place and the fix.
	Warnings []string
}

// Error is why a template cannot be rendered. It holds names and places, never
// values of a manifest.
type Error struct {
	// Source is the object that must be corrected: "AddOnTemplate hello".
	Source string
	// Manifest is the place of the manifest in the template and the name of its
	// object, empty where it is not about one.
	Manifest string
	// Field is the path of the field, in the manifest if there is one.
	Field string
	// Problem and Fix are sentence parts: "must be set", "give the object a name".
	Problem, Fix string
}

// Error is "AddOnTemplate hello: spec.agentSpec.workload.manifests[0] (Deployment
// web/agent): kind: must be set; write the kind".
func (e *Error) Error() string {
	text := e.Source
	for _, part := range []string{e.Manifest, e.Field} {
		if part != "" {
			text += ": " + part
		}
	}
	return text + ": " + e.Problem + "; " + e.Fix
}

// render is one rendering on its way.
type render struct {
	in       Input
	set      settings
	values   known
	objects  []object
	warnings []string
}

// object is one manifest and where it stands in the template.
type object struct {
	*unstructured.Unstructured
	// at is its place, empty for what is made beside the template.
	at string
}

// Render renders a template for a cluster. The error is an *Error that names the
// object, the manifest, the field and the fix. The same input gives the same result.
func Render(in Input) (Result, error) {
	r := &render{in: in}
	if err := r.check(); err != nil {
		return Result{}, err
	}
	var err error
	if r.set, err = r.settings(); err != nil {
		return Result{}, err
	}
	registrations, err := registrationsOf(in.Template, in.Cluster.Name)
	if err != nil {
		return Result{}, err
	}
	r.values = valuesOf(in, r.set)
	if err := r.read(); err != nil {
		return Result{}, err
	}
	namespace := r.installNamespace()
	if err := r.decorate(namespace, registrations); err != nil {
		return Result{}, err
	}
	if err := r.move(); err != nil {
		return Result{}, err
	}
	out := Result{ManifestConfigs: r.manifestConfigs(), Registrations: registrations, Namespace: namespace}
	out.Warnings = r.warnings
	for _, o := range r.objects {
		out.Manifests = append(out.Manifests, o.Unstructured)
	}
	return out, nil
}

// check refuses what does not belong together.
func (r *render) check() error {
	in := r.in
	if in.Template.Spec.AddonName != in.AddOn.Name {
		return &Error{
			Source: source(in.Template), Field: "spec.addonName", Problem: fmt.Sprintf("is not %q, the add-on that it is used for", in.AddOn.Name),
			Fix: "name this add-on, or use another template",
		}
	}
	if in.AddOn.Annotations[addonv1alpha1.AnnotationHostingClusterName] != "" {
		return &Error{
			Source: "ManagedClusterAddOn " + in.AddOn.Namespace + "/" + in.AddOn.Name, Field: "metadata.annotations[" + addonv1alpha1.AnnotationHostingClusterName + "]",
			Problem: "an add-on that is made of a template does not run on a hosting cluster", Fix: "remove the annotation, also from the ManagedCluster",
		}
	}
	return nil
}

// warn notes what is probably not meant so, once.
func (r *render) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.warnings, text) {
		r.warnings = append(r.warnings, text)
	}
}

// fault is an error about a field of a manifest.
func (r *render) fault(o object, field, problem, fix string) error {
	return &Error{Source: source(r.in.Template), Manifest: o.at, Field: field, Problem: problem, Fix: fix}
}

func source(t *addonv1alpha1.AddOnTemplate) string { return "AddOnTemplate " + t.Name }

// place is where a manifest stands, with the name of its object as far as it has
// one.
func place(index int, u *unstructured.Unstructured) string {
	at := fmt.Sprintf("spec.agentSpec.workload.manifests[%d]", index)
	if u == nil || u.GetKind() == "" {
		return at
	}
	return at + " (" + called(u) + ")"
}

// called is "Deployment web/agent".
func called(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}
