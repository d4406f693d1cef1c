// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// CreateOptions say which add-on to create from manifests.
type CreateOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Name of the add-on, and its Version; together they name the template.
	Name, Version string
	// Sources are the manifests as text; their strings may contain {{VARIABLES}}.
	Sources []manifest.Source
	// Namespace is for namespaced objects of built-in kinds that name no namespace; empty
	// leaves them without.
	Namespace string
	// Registered gives the agent access to the hub; Permissions are what it may do there:
	// clusterrole/NAME for its cluster's namespace, or NAMESPACE/role/NAME and
	// NAMESPACE/clusterrole/NAME for another one.
	Registered  bool
	Permissions []string
	// DisplayName and Description are for display; empty leaves them as they are.
	DisplayName, Description string
	// Labels are merged into those of the add-on.
	Labels map[string]string
	// Placement, NAMESPACE/NAME, is to install the add-on; empty leaves the install strategy
	// as it is.
	Placement string
	// Overwrite allows an existing template, or the add-on's default template, to be changed.
	Overwrite bool
}

// Template returns the AddOnTemplate that the options describe. It is not rendered here.
func (o *CreateOptions) Template() (*addonv1alpha1.AddOnTemplate, error) {
	if err := CheckName(o.Name); err != nil {
		return nil, err
	}
	if problems := validation.IsDNS1123Label(o.Namespace); o.Namespace != "" && len(problems) > 0 {
		return nil, fleet.Misuse(fmt.Sprintf("%q cannot be a namespace", o.Namespace), problems[0], CorrectNamespace.With())
	}
	t := &addonv1alpha1.AddOnTemplate{}
	t.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("AddOnTemplate"))
	t.Name, t.Spec.AddonName = o.Name+"-"+o.Version, o.Name
	if problems := validation.IsDNS1123Subdomain(t.Name); len(problems) > 0 {
		return nil, fleet.Misuse(fmt.Sprintf("wrong version %q", o.Version), "the template cannot have the name "+t.Name+": "+problems[0],
			ExampleVersion.With())
	}
	var err error
	if t.Spec.AgentSpec.Workload.Manifests, err = o.manifests(); err != nil {
		return nil, err
	}
	if !o.Registered && len(o.Permissions) == 0 {
		return t, nil
	}
	kube := &addonv1alpha1.KubeClientRegistrationConfig{}
	for _, text := range o.Permissions {
		p, err := hubPermission(text)
		if err != nil {
			return nil, err
		}
		kube.HubPermissions = append(kube.HubPermissions, p)
	}
	t.Spec.Registration = []addonv1alpha1.RegistrationSpec{{Type: addonv1alpha1.RegistrationTypeKubeClient, KubeClient: kube}}
	return t, nil
}

// manifests returns the objects of the sources, with a namespace where they need one.
func (o *CreateOptions) manifests() ([]workv1.Manifest, error) {
	var out []workv1.Manifest
	for _, s := range o.Sources {
		objects, err := s.Objects()
		if err != nil {
			return nil, err
		}
		for _, u := range objects {
			if o.Namespace != "" && u.GetNamespace() == "" && manifest.NamespacedKinds.Has(u.GroupVersionKind().GroupKind().String()) {
				u.SetNamespace(o.Namespace)
			}
			raw, err := json.Marshal(u.Object)
			if err != nil {
				return nil, fleet.Misuse(s.Name+" cannot be written as JSON", err.Error(), fleet.Advice("correct the file"))
			}
			out = append(out, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
		}
	}
	return out, nil
}

// hubPermission parses a permission of an agent on the hub.
func hubPermission(text string) (addonv1alpha1.HubPermissionConfig, error) {
	words := strings.Split(text, "/")
	kinds := map[string]string{"role": "Role", "clusterrole": "ClusterRole"}
	switch {
	case slices.Contains(words, ""):
	case len(words) == 1:
		words = []string{"clusterrole", words[0]}
		fallthrough
	case len(words) == 2 && strings.EqualFold(words[0], "clusterrole"):
		return addonv1alpha1.HubPermissionConfig{
			Type: addonv1alpha1.HubPermissionTypeCurrentCluster, CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: words[1]},
		}, nil
	case len(words) == 3 && kinds[strings.ToLower(words[1])] != "":
		return addonv1alpha1.HubPermissionConfig{Type: addonv1alpha1.HubPermissionTypeSingleNamespace, SingleNamespace: &addonv1alpha1.SingleNamespaceBindingConfig{
			Namespace: words[0], RoleRef: addonv1alpha1.RoleRef{APIGroup: rbacGroup, Kind: kinds[strings.ToLower(words[1])], Name: words[2]},
		}}, nil
	}
	return addonv1alpha1.HubPermissionConfig{}, fleet.Misuse(fmt.Sprintf("wrong permission %q", text), "",
		fleet.Advice("write clusterrole/NAME for the namespace of each cluster, or NAMESPACE/role/NAME or NAMESPACE/clusterrole/NAME for another one"))
}

const rbacGroup = "rbac.authorization.k8s.io"

// ReadCluster reads a managed cluster, to render a template for it.
func ReadCluster(ctx context.Context, hub *fleet.Cluster, name string) (*clusterv1.ManagedCluster, error) {
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, hub.Client, fleet.ManagedClusters, "", name)
	if apierrors.IsNotFound(err) {
		if err := fleet.NeedHub(ctx, hub); err != nil {
			return nil, err
		}
		return nil, naming.NoCluster(name, hub)
	}
	return mc, fleet.Explain("reading managedcluster "+name, hub, err)
}

// Create creates the template and registers the add-on with it as the default. An existing
// template with other content, or another default template, is refused without Overwrite:
// clusters would change.
func Create(ctx context.Context, o CreateOptions) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	if err := fleet.NeedHub(ctx, o.Hub); err != nil {
		return Result{}, err
	}
	t, err := o.Template()
	if err != nil {
		return Result{}, err
	}
	present, err := readAddOn(ctx, o.Hub, o.Name)
	if err != nil {
		return Result{}, err
	}
	registration, err := o.registration(ctx, r, present, t.Name)
	if err != nil {
		return Result{}, err
	}
	u, err := o.templateToApply(ctx, t)
	if err != nil {
		return Result{}, err
	}
	var out Result
	if out.Items, err = write.All(ctx, r, o.Hub, []*unstructured.Unstructured{u}); err != nil {
		return out, err
	}
	var change fleet.Change
	err = write.Again(func() (err error) {
		if registration == nil {
			if present, err = readAddOn(ctx, o.Hub, o.Name); err != nil {
				return err
			}
			if registration, err = o.registration(ctx, r, present, t.Name); err != nil {
				return err
			}
		}
		if present == nil {
			change, err = write.Create(ctx, r, o.Hub, registration)
		} else {
			change, err = write.Merge(ctx, r, o.Hub, registration)
		}
		u, registration = registration, nil // decided again
		return err
	})
	if err != nil {
		return out, fleet.Explain("applying "+fleet.Describe(u), o.Hub, write.Busy(u, err))
	}
	out.Items = append(out.Items, change)
	return out, nil
}

// templateToApply returns the template to apply, once it is clear that it may be applied.
func (o *CreateOptions) templateToApply(ctx context.Context, t *addonv1alpha1.AddOnTemplate) (*unstructured.Unstructured, error) {
	u, err := typed.ToUnstructured(t)
	if err != nil {
		return nil, err
	}
	live, err := write.Live(ctx, o.Hub, u)
	if err != nil {
		return nil, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
	}
	if live != nil && !o.Overwrite && !equality.Semantic.DeepEqual(live.Object["spec"], u.Object["spec"]) {
		return nil, fleet.Refuse(fmt.Sprintf("the template %q already exists with other content", t.Name), "clusters that use it would be changed at once",
			OtherVersion.With())
	}
	return u, nil
}

// registration returns the ClusterManagementAddOn to create, or the changes to the existing
// one.
func (o *CreateOptions) registration(ctx context.Context, r *fleet.Run, present *addonv1alpha1.ClusterManagementAddOn,
	template string) (*unstructured.Unstructured, error) {
	wanted := &addonv1alpha1.ClusterManagementAddOn{}
	wanted.Name = o.Name
	if present != nil {
		wanted = present.DeepCopy()
		if !ManagedByHub(present) && !o.Overwrite {
			return nil, fleet.Refuse(fmt.Sprintf("the add-on %q installs itself", o.Name), "its annotation "+addonv1alpha1.AnnotationLifecycle+" says so",
				TakeOver.With())
		}
	}
	if o.Placement != "" {
		c := &change{Options: Options{Hub: o.Hub, Targets: cluster.Targets{Placement: o.Placement}}, run: r}
		var err error
		if wanted, err = c.underPlacement(ctx, wanted); err != nil {
			return nil, err
		}
	}
	old := setDefault(wanted, template)
	if old != "" && old != template && !o.Overwrite {
		return nil, fleet.Refuse(fmt.Sprintf("the add-on %q has the default template %q", o.Name, old), "its clusters would be changed to "+template,
			ChangeDefault.With())
	}
	spec, err := o.spec(wanted)
	if err != nil {
		return nil, err
	}
	u := fleet.Named(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"), "", o.Name)
	if len(o.Labels) > 0 {
		u.SetLabels(o.Labels)
	}
	u.SetAnnotations(map[string]string{addonv1alpha1.AnnotationLifecycle: addonv1alpha1.LifecycleAddOnManager})
	if present != nil && !o.Reads() {
		u.SetResourceVersion(present.ResourceVersion)
	}
	u.Object["spec"] = spec
	return u, nil
}

// setDefault makes a template the default one, and returns the previous one.
func setDefault(a *addonv1alpha1.ClusterManagementAddOn, template string) (old string) {
	kind := addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: addonv1alpha1.ResourceTemplate}
	for _, kind := range []addonv1alpha1.ConfigGroupResource{kind, deploymentKind} {
		if !slices.ContainsFunc(a.Spec.SupportedConfigs, func(m addonv1alpha1.ConfigMeta) bool { return m.ConfigGroupResource == kind }) {
			a.Spec.SupportedConfigs = append(a.Spec.SupportedConfigs, addonv1alpha1.ConfigMeta{ConfigGroupResource: kind})
		}
	}
	for i := range a.Spec.SupportedConfigs {
		if at := &a.Spec.SupportedConfigs[i]; at.ConfigGroupResource == kind {
			if d := DefaultOf(*at); d != nil {
				old = d.Name
			}
			at.DefaultConfig = &addonv1alpha1.ConfigReferent{Name: template}
		}
	}
	return old
}

// spec returns the fields of the add-on's spec that the options set.
func (o *CreateOptions) spec(wanted *addonv1alpha1.ClusterManagementAddOn) (map[string]any, error) {
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&wanted.Spec)
	if err != nil {
		return nil, fmt.Errorf("encoding an add-on: %w", err)
	}
	spec := map[string]any{"supportedConfigs": all["supportedConfigs"]}
	if o.Placement != "" {
		spec["installStrategy"] = all["installStrategy"]
	}
	meta := map[string]any{}
	for field, value := range map[string]string{"displayName": o.DisplayName, "description": o.Description} {
		if value != "" {
			meta[field] = value
		}
	}
	if len(meta) > 0 {
		spec["addOnMeta"] = meta
	}
	return spec, nil
}
