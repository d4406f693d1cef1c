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

// Input is everything that a rendering depends on. Render does not change it.
type Input struct {
	// Template is the template of the cluster's resolved configuration.
	Template *addonv1alpha1.AddOnTemplate
	// AddOn is the add-on on the cluster.
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Cluster is the managed cluster.
	Cluster *clusterv1.ManagedCluster
	// Configs are the AddOnDeploymentConfigs of the cluster, the strongest first. What one
	// does not set is taken from the next; only the namespace is always that of the first,
	// because the API defaults it in each of them.
	Configs []*addonv1alpha1.AddOnDeploymentConfig
}

// Result is a template rendered for a cluster.
type Result struct {
	// Manifests are the objects for the managed cluster in the order of the template,
	// including hooks; objects that the hub adds come last.
	Manifests []*unstructured.Unstructured
	// ManifestConfigs are those of the template, with the final names of the manifests.
	ManifestConfigs []workv1.ManifestConfigOption
	// Registrations are the credentials that the agent needs.
	Registrations []Registration
	// Namespace is the namespace that the agent runs in, which also holds its credentials.
	Namespace string
	// Warnings are probable mistakes, each with its location and the fix.
	Warnings []string
}

// Error is why a template cannot be rendered. It contains names and locations, never values
// of a manifest.
type Error struct {
	// Source is the object that must be corrected: "AddOnTemplate hello".
	Source string
	// Manifest is the location of the manifest in the template and the name of its object;
	// empty if the error is not about a manifest.
	Manifest string
	// Field is the path of the field, in the manifest if the error is about one.
	Field string
	// Problem and Fix are sentence parts: "must be set", "give the object a name".
	Problem, Fix string
}

// Error returns for example "AddOnTemplate hello: spec.agentSpec.workload.manifests[0]
// (Deployment web/agent): kind: must be set; write the kind".
func (e *Error) Error() string {
	text := e.Source
	for _, part := range []string{e.Manifest, e.Field} {
		if part != "" {
			text += ": " + part
		}
	}
	return text + ": " + e.Problem + "; " + e.Fix
}

// render is a rendering in progress.
type render struct {
	in      Input
	set     settings
	values  known
	objects []object
	out     Result
}

// object is one manifest and its location in the template.
type object struct {
	*unstructured.Unstructured
	// at is its location, empty for objects that the hub adds.
	at string
}

// Render renders a template for a cluster. The error is an *Error that names the
// object, the manifest, the field and the fix. The same input gives the same result.
func Render(in Input) (Result, error) {
	r := &render{in: in}
	for _, step := range []func() error{r.check, r.settings, r.registrations, r.readManifests, r.decorate, r.move} {
		if err := step(); err != nil {
			return Result{}, err
		}
	}
	r.out.ManifestConfigs = r.manifestConfigs()
	for _, o := range r.objects {
		r.out.Manifests = append(r.out.Manifests, o.Unstructured)
	}
	return r.out, nil
}

// check refuses inputs that do not belong together.
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
			Source:  "ManagedClusterAddOn " + in.AddOn.Namespace + "/" + in.AddOn.Name,
			Field:   "metadata.annotations[" + addonv1alpha1.AnnotationHostingClusterName + "]",
			Problem: "an add-on that is made of a template does not run on a hosting cluster", Fix: "remove the annotation, also from the ManagedCluster",
		}
	}
	return nil
}

// warn records a probable mistake, once.
func (r *render) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.out.Warnings, text) {
		r.out.Warnings = append(r.out.Warnings, text)
	}
}

// fault returns an error about a field of a manifest.
func (r *render) fault(o object, field, problem, fix string) error {
	return &Error{Source: source(r.in.Template), Manifest: o.at, Field: field, Problem: problem, Fix: fix}
}

func source(t *addonv1alpha1.AddOnTemplate) string { return "AddOnTemplate " + t.Name }

// place returns the location of a manifest, with the name of its object if it has one.
func place(index int, u *unstructured.Unstructured) string {
	at := fmt.Sprintf("spec.agentSpec.workload.manifests[%d]", index)
	if u == nil || u.GetKind() == "" {
		return at
	}
	return at + " (" + called(u) + ")"
}

// called returns kind and name of an object, for example "Deployment web/agent".
func called(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}
