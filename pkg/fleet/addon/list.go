// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"cmp"
	"context"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
)

// labelVersion is the label with which an add-on may give its version.
const labelVersion = "app.kubernetes.io/version"

// ListOptions say which add-ons to list.
type ListOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Names keeps add-ons of these names; empty keeps all.
	Names []string
	// Selector is a label selector on the ClusterManagementAddOns.
	Selector string
	// Targets counts these clusters only; empty counts all.
	Targets cluster.Targets
}

// Info is the summary of one add-on.
type Info struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	// Install is Manual or Placements; empty when the add-on is on clusters but not
	// registered.
	Install string `json:"install,omitempty"`
	// Placements are those of the install strategy, NAMESPACE/NAME.
	Placements []string `json:"placements,omitempty"`
	// Enabled counts clusters with the add-on: Available where it works, Degraded where it
	// works but reports trouble or is not in the desired state, Unavailable where it does not
	// work. The rest is unknown.
	Enabled     int `json:"enabled"`
	Available   int `json:"available"`
	Degraded    int `json:"degraded"`
	Unavailable int `json:"unavailable"`
	// Rollout is how far its configurations have reached the clusters of its placements; nil if
	// it has none.
	Rollout *cluster.Rollout `json:"rollout,omitempty"`
	// Version comes from the label of the add-on or the name of its default template.
	Version string `json:"version,omitempty"`
	// Configs are its default configurations, RESOURCE/NAMESPACE/NAME.
	Configs []string `json:"configs,omitempty"`
	// Lifecycle is who manages its installation: addon-manager or self.
	Lifecycle string `json:"lifecycle,omitempty"`
	// Registrations are how it authenticates to the hub on its clusters: csr, token, or the
	// name of another signer.
	Registrations []string          `json:"registrations,omitempty"`
	Created       metav1.Time       `json:"created"`
	Labels        map[string]string `json:"labels,omitempty"`
}

// List lists add-ons by name and counts the clusters that have them. It sends two list
// requests, however many there are.
func List(ctx context.Context, o ListOptions) ([]Info, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	var registered, instances []unstructured.Unstructured
	if err := fleet.ListTogether(ctx, o.Hub,
		fleet.Into(&registered, fleet.Query{Resource: fleet.ManagementAddOns, Labels: o.Selector}),
		fleet.Into(&instances, fleet.Query{Resource: fleet.ClusterAddOns}),
	); err != nil {
		return nil, err
	}
	if len(registered) == 0 {
		if err := fleet.NeedHub(ctx, o.Hub); err != nil {
			return nil, err
		}
	}
	found, rollouts := map[string]*Info{}, map[string]*rollout{}
	if err := placement.TakeUp(&registered, func(a *addonv1alpha1.ClusterManagementAddOn) {
		found[a.Name], rollouts[a.Name] = infoOf(a), rolloutOf(a)
	}); err != nil {
		return nil, err
	}
	if !o.Targets.Empty() && !o.Targets.All {
		clusters, err := o.Targets.Resolve(ctx, o.Hub)
		if err != nil {
			return nil, err
		}
		instances = slices.DeleteFunc(instances, func(u unstructured.Unstructured) bool { return !slices.Contains(clusters, u.GetNamespace()) })
	}
	if err := placement.TakeUp(&instances, func(a *addonv1alpha1.ManagedClusterAddOn) {
		rollouts[a.Name].see(a)
		if found[a.Name] == nil {
			if o.Selector != "" {
				return // it has no labels of its own that could match
			}
			found[a.Name] = &Info{Name: a.Name, Created: a.CreationTimestamp}
		}
		found[a.Name].count(a)
	}); err != nil {
		return nil, err
	}
	out := make([]Info, 0, len(found))
	for name, info := range found {
		if len(o.Names) == 0 || slices.Contains(o.Names, name) {
			slices.Sort(info.Registrations)
			info.Registrations = slices.Compact(info.Registrations)
			info.Rollout = rollouts[name].result()
			out = append(out, *info)
		}
	}
	slices.SortFunc(out, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

func infoOf(a *addonv1alpha1.ClusterManagementAddOn) *Info {
	info := &Info{
		Name: a.Name, DisplayName: a.Spec.AddOnMeta.DisplayName, Install: cmp.Or(a.Spec.InstallStrategy.Type, addonv1alpha1.InstallStrategyManual),
		Version: a.Labels[labelVersion], Lifecycle: addonv1alpha1.LifecycleAddOnManager, Created: a.CreationTimestamp, Labels: a.Labels,
	}
	if !ManagedByHub(a) {
		info.Lifecycle = addonv1alpha1.LifecycleSelf
	}
	if info.Install == addonv1alpha1.InstallStrategyPlacements {
		info.Placements = placementsOf(a)
	}
	for _, c := range a.Spec.SupportedConfigs {
		if d := DefaultOf(c); d != nil {
			info.Configs = append(info.Configs, strings.Join([]string{c.Resource, d.Namespace, d.Name}, "/"))
			if c.Resource == addonv1alpha1.ResourceTemplate && info.Version == "" {
				info.Version = VersionOf(a.Name, d.Name)
			}
		}
	}
	return info
}

// placementsOf returns the placements of the install strategy, NAMESPACE/NAME.
func placementsOf(a *addonv1alpha1.ClusterManagementAddOn) []string {
	var out []string
	for _, p := range a.Spec.InstallStrategy.Placements {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return out
}

// DefaultOf returns the default configuration of a kind; nil when there is none.
func DefaultOf(c addonv1alpha1.ConfigMeta) *addonv1alpha1.ConfigReferent {
	if d := c.DefaultConfig; d != nil && d.Name != "" && d.Name != addonv1alpha1.ReservedNoDefault {
		return d
	}
	return nil
}

// VersionOf returns the version in the name of a template; empty when there is none.
func VersionOf(addOn, template string) string {
	if version, ok := strings.CutPrefix(template, addOn+"-"); ok {
		return version
	}
	return ""
}

// ManagedByHub reports whether the hub installs the add-on.
func ManagedByHub(a *addonv1alpha1.ClusterManagementAddOn) bool {
	lifecycle, set := a.Annotations[addonv1alpha1.AnnotationLifecycle]
	return !set || lifecycle == addonv1alpha1.LifecycleAddOnManager
}

func (i *Info) count(a *addonv1alpha1.ManagedClusterAddOn) {
	i.Enabled++
	available := apimeta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionAvailable)
	switch {
	case available != nil && available.Status == metav1.ConditionFalse:
		i.Unavailable++
	case apimeta.IsStatusConditionTrue(a.Status.Conditions, addonv1alpha1.ConditionDegraded),
		available != nil && available.Status == metav1.ConditionTrue && unappliedObjects(a) != "":
		i.Degraded++
	case available != nil && available.Status == metav1.ConditionTrue:
		i.Available++
	}
	for _, r := range a.Status.Registrations {
		how := r.SignerName
		if how == addonv1alpha1.KubeAPIServerSigner {
			how = cmp.Or(string(a.Status.KubeClientDriver), string(addonv1alpha1.DriverTypeCSR))
		}
		i.Registrations = append(i.Registrations, how)
	}
}
