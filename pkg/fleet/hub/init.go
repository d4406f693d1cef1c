// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/gate"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Image repositories of a release, below a registry.
const (
	defaultRegistry = "ghcr.io/kubectl-ocm"
	hubImage        = "ocm-hub"
	agentImage      = "ocm-agent"
)

// Images returns the images of a release: hub, then agent. An empty registry means the default
// one.
func Images(registry, version string) []string {
	if registry == "" {
		registry = defaultRegistry
	}
	registry = strings.TrimSuffix(registry, "/")
	return []string{registry + "/" + hubImage + ":" + version, registry + "/" + agentImage + ":" + version}
}

// InitOptions say how a cluster becomes a hub.
type InitOptions struct {
	fleet.Common
	// Hub is the cluster.
	Hub *fleet.Cluster
	// Image of the hub process; empty means that of Version in the default
	// registry.
	Image string
	// Version to install.
	Version string
	// FeatureGates by name; others stay as they are.
	FeatureGates map[string]bool
	// AutoAccept are the users whose clusters are accepted automatically.
	AutoAccept []string
	// APIServerURL is the hub address for agents; empty means the address of the context.
	APIServerURL string
	// Replicas of the hub process; 0 keeps the current number, at least 1.
	Replicas int32
	// Layout is LayoutCompact or LayoutSplit; empty keeps the current one, at first compact.
	Layout string
	// AddOnRights are the rights of the add-on manager: AddOnRightsDefault or
	// AddOnRightsNarrow; empty keeps the current ones.
	AddOnRights string
	// TakeOver ends what another distribution runs of the same hub. It is called when our
	// process is installed, before Init waits for the hub; nil refuses such a hub.
	TakeOver func(context.Context, *fleet.Run) error
	// KeepAPIs leaves the APIs and all objects of users in place when the hub is removed. A hub that is
	// there keeps what it does.
	KeepAPIs bool
}

// Rights of the add-on manager: those that charts of add-ons rely on, or only what it needs
// itself; with the latter, an administrator grants what else an add-on is to have.
const (
	AddOnRightsDefault = "default"
	AddOnRightsNarrow  = "narrow"
)

// InitResult is the result of Init.
type InitResult struct {
	// Context and Server are where it is.
	Context string `json:"context"`
	Server  string `json:"hub-apiserver"`
	// Version and Image are what runs there.
	Version string `json:"version"`
	Image   string `json:"image"`
	// Action is created, configured or unchanged.
	Action fleet.Action `json:"action"`
	// Ready is true when Init waited until the hub was ready.
	Ready bool `json:"ready"`
	// Items are the objects that were applied.
	Items []fleet.Change `json:"items"`
}

// Init turns a cluster into a hub, or updates an existing one. The checks before the first
// write only read. With Wait it returns when the hub answers.
func Init(ctx context.Context, o InitOptions) (InitResult, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	if o.Image == "" {
		o.Image = Images("", o.Version)[0]
	}
	result := InitResult{Context: o.Hub.Context, Server: o.Hub.Server(), Version: o.Version, Image: o.Image, Action: fleet.Unchanged}
	if err := gate.Check(o.FeatureGates, gate.Hub); err != nil {
		return result, err
	}
	if o.APIServerURL != "" {
		if err := trust.CheckURL("the address of the hub", o.APIServerURL); err != nil {
			return result, err
		}
	}
	if err := o.preflight(ctx, r); err != nil {
		return result, r.Fail(err)
	}
	if err := o.keepArguments(ctx); err != nil {
		return result, err
	}
	objects, err := o.objects(ctx)
	if err != nil {
		return result, err
	}
	r.Step("namespace, rights, controller")
	result.Items, err = write.All(ctx, r, o.Hub, objects)
	if err != nil {
		return result, r.Fail(err)
	}
	result.Action = initAction(result.Items)
	r.Done(fmt.Sprintf("%d objects, %s", len(result.Items), result.Action))
	if o.Reads() {
		return result, nil
	}
	if o.TakeOver != nil {
		if err := o.TakeOver(ctx, r); err != nil {
			return result, r.Fail(err)
		}
	}
	if !o.Wait {
		return result, nil
	}
	if err := o.wait(ctx, r); err != nil {
		return result, r.Fail(err)
	}
	pruned, err := o.prune(ctx)
	result.Items = append(result.Items, pruned...)
	if err != nil {
		return result, r.Fail(err)
	}
	result.Ready = true
	return result, nil
}

// initAction returns created when there was no hub before.
func initAction(changes []fleet.Change) fleet.Action {
	for _, c := range changes {
		if c.Object.GetKind() == "ClusterManager" && c.Action == fleet.Created {
			return fleet.Created
		}
	}
	return fleet.Worst(changes)
}

// objects returns everything that a hub consists of, with the settings of an earlier run or a
// user.
func (o *InitOptions) objects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	narrow, err := o.wantsNarrowRights(ctx)
	if err != nil {
		return nil, err
	}
	on, err := o.gatesOn(ctx)
	if err != nil {
		return nil, err
	}
	placement, resources, err := o.declaredPods(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := hub.Objects(hub.Options{
		Image: o.Image, Version: o.Version, Replicas: o.Replicas, NarrowAddOnRights: narrow, Layout: o.Layout,
		Importer: on[gate.ClusterImporter], Credentials: on[gate.ClusterProfile] && on[gate.ManagedServiceAccount],
		Placement: placement, Resources: resources, KeepAPIs: o.KeepAPIs,
	})
	if err != nil {
		return nil, err
	}
	for i, u := range objects {
		if u.GetKind() != "ClusterManager" {
			continue
		}
		if objects[i], err = o.clusterManager(ctx, u); err != nil {
			return nil, err
		}
	}
	info, err := o.clusterInfo(ctx)
	if err != nil {
		return nil, err
	}
	return append(objects, info...), nil
}

// declaredPods returns where the ClusterManager wants the pods of the hub to run, and what they are
// to request.
func (o *InitOptions) declaredPods(ctx context.Context) (placement operatorv1.NodePlacement, resources *operatorv1.ResourceRequirement, err error) {
	u := fleet.Named(operatorv1.GroupVersion.WithKind("ClusterManager"), "", operatorv1.DefaultClusterManagerName)
	live, err := write.Live(ctx, o.Hub, u)
	if err != nil {
		return placement, nil, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
	}
	if live == nil {
		return placement, nil, nil
	}
	spec, _, _ := unstructured.NestedMap(live.Object, "spec")
	// The rest of a spec may be one that cannot be decoded; the hub says so.
	u.Object["spec"] = map[string]any{"nodePlacement": spec["nodePlacement"], "resourceRequirement": spec["resourceRequirement"]}
	cm, err := typed.FromUnstructured[operatorv1.ClusterManager](u)
	if err != nil {
		return placement, nil, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
	}
	return cm.Spec.NodePlacement, cm.Spec.ResourceRequirement, nil
}

// wantsNarrowRights reports whether the add-on manager has narrow rights: as requested, else as an
// earlier run left it.
func (o *InitOptions) wantsNarrowRights(ctx context.Context) (bool, error) {
	if o.AddOnRights != "" {
		return o.AddOnRights == AddOnRightsNarrow, nil
	}
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": hub.AddOnAgentsBinding},
	}}
	live, err := write.Live(ctx, o.Hub, binding)
	if err != nil {
		return false, fleet.Explain("reading "+fleet.Describe(binding), o.Hub, err)
	}
	if live == nil {
		return false, nil
	}
	subjects, _, _ := unstructured.NestedSlice(live.Object, "subjects")
	return len(subjects) == 0, nil
}

// gatesOn returns which feature gates are on that are off by default: as the ClusterManager says,
// then as requested.
func (o *InitOptions) gatesOn(ctx context.Context) (map[string]bool, error) {
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, o.Hub.Client, operatorv1.GroupVersion.WithResource("clustermanagers"), "", hub.Name)
	if apierrors.IsNotFound(err) {
		cm, err = &operatorv1.ClusterManager{}, nil
	}
	if err != nil {
		return nil, fleet.Explain("reading clustermanager "+hub.Name, o.Hub, err)
	}
	on := declaredGates(cm.Spec)
	maps.Copy(on, o.FeatureGates)
	return on, nil
}

// declaredGates returns the feature gates of registration and add-ons that a spec names.
func declaredGates(spec operatorv1.ClusterManagerSpec) map[string]bool {
	var gates []operatorv1.FeatureGate
	if c := spec.RegistrationConfiguration; c != nil {
		gates = append(gates, c.FeatureGates...)
	}
	if c := spec.AddOnManagerConfiguration; c != nil {
		gates = append(gates, c.FeatureGates...)
	}
	on := map[string]bool{}
	for _, g := range gates {
		on[g.Feature] = g.Mode == operatorv1.FeatureGateModeTypeEnable
	}
	return on
}

// clusterManager merges the current settings and the requested ones into the ClusterManager.
func (o *InitOptions) clusterManager(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := write.Live(ctx, o.Hub, u)
	if err != nil {
		return nil, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
	}
	if live != nil {
		spec, _, _ := unstructured.NestedMap(live.Object, "spec")
		u = u.DeepCopy()
		u.Object["spec"] = spec
		if err := o.checkImages(live); err != nil {
			return nil, err
		}
	}
	if len(o.FeatureGates)+len(o.AutoAccept) == 0 {
		return u, nil
	}
	cm, err := typed.FromUnstructured[operatorv1.ClusterManager](u)
	if err != nil {
		return nil, err
	}
	o.applyOptions(cm)
	return typed.ToUnstructured(cm)
}

// checkImages refuses the split layout for a ClusterManager whose images do not run it: the loops of the
// compact layout would end, and no others start.
func (o *InitOptions) checkImages(live *unstructured.Unstructured) error {
	if o.Layout != LayoutSplit {
		return nil
	}
	cm, err := typed.FromUnstructured[operatorv1.ClusterManager](live)
	if err != nil {
		return fmt.Errorf("reading %s: %w", fleet.Describe(live), err)
	}
	if err := hub.CheckImages(cm.Spec); err != nil {
		return fleet.Refuse("the images of "+fleet.Describe(live)+" do not run the split layout", fleet.OneLine(err.Error()),
			fleet.Advice("remove these fields, or name a mirror of the image of this release in them"))
	}
	return nil
}

// applyOptions sets feature gates and automatic acceptance.
func (o *InitOptions) applyOptions(cm *operatorv1.ClusterManager) {
	gates := map[string]map[string]bool{}
	set := func(name string, on bool) {
		for part, names := range gate.Hub {
			for _, n := range names {
				if n == name {
					if gates[part] == nil {
						gates[part] = map[string]bool{}
					}
					gates[part][name] = on
				}
			}
		}
	}
	for name, on := range o.FeatureGates {
		set(name, on)
	}
	if len(o.AutoAccept) > 0 {
		set("ManagedClusterAutoApproval", true)
	}
	setGates(&cm.Spec, gates)
	if len(o.AutoAccept) > 0 {
		cm.Spec.RegistrationConfiguration.AutoApproveUsers = o.AutoAccept
	}
}

// setGates merges gates into the parts of the configuration they belong to.
func setGates(s *operatorv1.ClusterManagerSpec, gates map[string]map[string]bool) {
	if gates["registration"] != nil {
		if s.RegistrationConfiguration == nil {
			s.RegistrationConfiguration = &operatorv1.RegistrationHubConfiguration{}
		}
		s.RegistrationConfiguration.FeatureGates = gate.Merge(s.RegistrationConfiguration.FeatureGates, gates["registration"])
	}
	if gates["work"] != nil {
		if s.WorkConfiguration == nil {
			s.WorkConfiguration = &operatorv1.WorkConfiguration{}
		}
		s.WorkConfiguration.FeatureGates = gate.Merge(s.WorkConfiguration.FeatureGates, gates["work"])
	}
	if gates["addon"] != nil {
		if s.AddOnManagerConfiguration == nil {
			s.AddOnManagerConfiguration = &operatorv1.AddOnManagerConfiguration{}
		}
		s.AddOnManagerConfiguration.FeatureGates = gate.Merge(s.AddOnManagerConfiguration.FeatureGates, gates["addon"])
	}
	if gates["placement"] != nil {
		if s.PlacementConfiguration == nil {
			s.PlacementConfiguration = &operatorv1.PlacementConfiguration{}
		}
		s.PlacementConfiguration.FeatureGates = gate.Merge(s.PlacementConfiguration.FeatureGates, gates["placement"])
	}
}
