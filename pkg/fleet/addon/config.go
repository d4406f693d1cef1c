// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// deploymentConfigs is the resource of AddOnDeploymentConfigs, deploymentKind the kind of configuration.
var (
	deploymentConfigs = addonv1alpha1.GroupVersion.WithResource(addonv1alpha1.ResourceDeploymentConfig)
	deploymentKind    = addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: addonv1alpha1.ResourceDeploymentConfig}
)

// labelSetFor marks an AddOnDeploymentConfig that Enable created to hold variables; its value
// is the add-on that it belongs to.
const labelSetFor = "addon.open-cluster-management.io/set-for"

// ParseConfig parses the name of a configuration object: GROUP/RESOURCE/NAMESPACE/NAME, or
// RESOURCE/NAMESPACE/NAME for the core group and for AddOnDeploymentConfigs. The namespace is
// empty for a cluster-scoped object.
func ParseConfig(text string) (addonv1alpha1.AddOnConfig, error) {
	words := strings.Split(text, "/")
	var out addonv1alpha1.AddOnConfig
	switch len(words) {
	case 3:
		out.Resource, out.Namespace, out.Name = words[0], words[1], words[2]
		if out.Resource == addonv1alpha1.ResourceDeploymentConfig || out.Resource == addonv1alpha1.ResourceTemplate {
			out.Group = addonv1alpha1.GroupName
		}
	case 4:
		out.Group, out.Resource, out.Namespace, out.Name = words[0], words[1], words[2], words[3]
	}
	if out.Resource == "" || out.Name == "" {
		return out, fleet.Misuse(fmt.Sprintf("wrong configuration %q", text), "",
			fleet.Advice("name a file, or GROUP/RESOURCE/NAMESPACE/NAME, for example addon.open-cluster-management.io/addondeploymentconfigs/default/small"))
	}
	return out, nil
}

// applyConfigs applies the configuration objects and adds them to Configs.
func (c *change) applyConfigs(ctx context.Context) error {
	if len(c.Objects) == 0 {
		return nil
	}
	kinds, err := c.Hub.Kinds()
	if err != nil {
		return err
	}
	for _, u := range c.Objects {
		kind, ok := kinds.Of(u.GroupVersionKind())
		if !ok && u.GroupVersionKind().Group == addonv1alpha1.GroupName {
			kind.Resource, ok = fleet.ResourceOf(u), true
		}
		if !ok {
			return &fleet.Error{Message: "the hub does not serve the kind of " + fleet.Describe(u), Cause: u.GetAPIVersion() + " " + u.GetKind(),
				Fix: fleet.ListKinds.On(c.Hub)}
		}
		change, err := write.One(ctx, c.run, c.Hub, u)
		if err != nil {
			return fleet.Explain("applying "+fleet.Describe(u), c.Hub, err)
		}
		c.recordBeside(change)
		c.Configs = append(c.Configs, addonv1alpha1.AddOnConfig{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: kind.Resource.Group, Resource: kind.Resource.Resource},
			ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: u.GetNamespace(), Name: u.GetName()},
		})
	}
	return nil
}

// configsFor returns the list of configurations that an add-on is to have on a cluster; nil
// leaves it as it is.
func (c *change) configsFor(ctx context.Context, p Pair, live *unstructured.Unstructured) ([]any, error) {
	present := &addonv1alpha1.ManagedClusterAddOn{}
	if live != nil {
		var err error
		if present, err = typed.FromUnstructured[addonv1alpha1.ManagedClusterAddOn](live); err != nil {
			return nil, err
		}
	}
	given := slices.Clone(c.Configs)
	if len(c.Variables) > 0 {
		own, err := c.applyVariables(ctx, p, present)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(given, own) {
			given = append([]addonv1alpha1.AddOnConfig{own}, given...)
		}
	}
	if len(given) == 0 {
		return nil, nil
	}
	var out []any
	for _, config := range replaced(present.Spec.Configs, given) {
		item, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&config)
		if err != nil {
			return nil, fmt.Errorf("encoding a configuration: %w", err)
		}
		out = append(out, item)
	}
	return out, nil
}

// replaced returns the present configurations with the given ones in place of all those of
// their kinds.
func replaced(present, given []addonv1alpha1.AddOnConfig) []addonv1alpha1.AddOnConfig {
	kept := slices.DeleteFunc(slices.Clone(present), func(old addonv1alpha1.AddOnConfig) bool {
		return slices.ContainsFunc(given, func(g addonv1alpha1.AddOnConfig) bool { return g.ConfigGroupResource == old.ConfigGroupResource })
	})
	return append(kept, given...)
}

// applyVariables sets the variables in the AddOnDeploymentConfig of the add-on in the cluster's
// namespace. A new one starts as a copy of the one in effect, because it replaces that.
func (c *change) applyVariables(ctx context.Context, p Pair, present *addonv1alpha1.ManagedClusterAddOn) (addonv1alpha1.AddOnConfig, error) {
	own := addonv1alpha1.AddOnConfig{ConfigGroupResource: deploymentKind, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: p.Cluster, Name: p.AddOn}}
	u := fleet.Named(addonv1alpha1.GroupVersion.WithKind("AddOnDeploymentConfig"), p.Cluster, p.AddOn)
	live, err := write.Live(ctx, c.Hub, u)
	if err != nil {
		return own, fleet.Explain("reading "+fleet.Describe(u), c.Hub, err)
	}
	spec, before := map[string]any{"agentInstallNamespace": ""}, live
	if before == nil {
		if before, err = c.configInEffect(ctx, p, present); err != nil {
			return own, err
		}
	}
	if before != nil {
		if have, ok, _ := unstructured.NestedMap(before.Object, "spec"); ok {
			spec = have
		}
	}
	items, _, _ := unstructured.NestedSlice(spec, "customizedVariables")
	for _, name := range slices.Sorted(maps.Keys(c.Variables)) {
		items = slices.DeleteFunc(items, func(item any) bool { m, _ := item.(map[string]any); return m["name"] == name })
		items = append(items, map[string]any{"name": name, "value": c.Variables[name]})
	}
	slices.SortStableFunc(items, func(a, b any) int {
		x, _ := a.(map[string]any)["name"].(string)
		y, _ := b.(map[string]any)["name"].(string)
		return strings.Compare(x, y)
	})
	spec["customizedVariables"] = items
	u.Object["spec"] = spec
	if live == nil || live.GetLabels()[labelSetFor] == p.AddOn {
		u.SetLabels(map[string]string{labelSetFor: p.AddOn})
	}
	change, err := write.One(ctx, c.run, c.Hub, u)
	if err != nil {
		return own, fleet.Explain("applying "+fleet.Describe(u), c.Hub, err)
	}
	c.recordBeside(change)
	return own, nil
}

// configInEffect returns the AddOnDeploymentConfig in effect on a cluster; nil when there is none.
func (c *change) configInEffect(ctx context.Context, p Pair, present *addonv1alpha1.ManagedClusterAddOn) (*unstructured.Unstructured, error) {
	var at *addonv1alpha1.ConfigReferent
	for _, s := range c.addOns[p.AddOn].Spec.SupportedConfigs {
		if d := DefaultOf(s); s.ConfigGroupResource == deploymentKind && d != nil {
			at = d
		}
	}
	for _, r := range slices.Backward(present.Status.ConfigReferences) {
		if r.ConfigGroupResource == deploymentKind && r.DesiredConfig != nil {
			at = &r.DesiredConfig.ConfigReferent
		}
	}
	for _, r := range slices.Backward(present.Spec.Configs) {
		if r.ConfigGroupResource == deploymentKind {
			at = &r.ConfigReferent
		}
	}
	if at == nil {
		return nil, nil
	}
	u, err := c.Hub.Client.Resource(deploymentConfigs).Namespace(at.Namespace).Get(ctx, at.Name, fleet.GetOptions)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err == nil {
		c.warn("%s on %s gets a copy of AddOnDeploymentConfig %s/%s, and no longer follows it", p.AddOn, p.Cluster, at.Namespace, at.Name)
	}
	return u, fleet.Explain("reading addondeploymentconfig "+at.Namespace+"/"+at.Name, c.Hub, err)
}

// ReadConfigs reads configuration objects from files. Those without a namespace get the given
// one if their kind is an add-on kind or a namespaced kind of Kubernetes itself.
func ReadConfigs(sources []manifest.Source, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, s := range sources {
		objects, err := s.Objects()
		if err != nil {
			return nil, err
		}
		for _, u := range objects {
			if u.GetKind() == "AddOnDeploymentConfig" && u.GetNamespace() == "" {
				u.SetNamespace(namespace)
			}
			if err := manifest.Check(u, s.Name, namespace); err != nil {
				return nil, err
			}
			out = append(out, u)
		}
	}
	if len(out) == 0 {
		return nil, fleet.Misuse("there is no configuration", "the input contains no Kubernetes object", NameConfig.With())
	}
	return out, nil
}
