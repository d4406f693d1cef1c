// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// overlay puts the objects of a kind that are to be sent into the place of those that are there.
func (c *checking) overlay(items *[]unstructured.Unstructured, kind string) {
	for i := range c.sent {
		u := &c.sent[i]
		if u.GetKind() != kind || !ours(u) {
			continue
		}
		*items = slices.DeleteFunc(*items, func(old unstructured.Unstructured) bool {
			return old.GetName() == u.GetName() && old.GetNamespace() == u.GetNamespace()
		})
		*items = append(*items, *u)
	}
}

// preview is the hub as it will be once all manifests have been sent. Each part is read when the
// first object needs it.
type preview struct {
	*checking
	placed   *placed
	addOns   *addOnFleet
	clusters map[string]map[string]string
	sets     map[string]bool
}

// of returns why an object that the hub takes will not work there, by the check that would find it
// afterwards.
func (p *preview) of(ctx context.Context, u *unstructured.Unstructured) ([]Finding, error) {
	look, known := map[string]func(context.Context, *unstructured.Unstructured) ([]Finding, error){
		"Placement": p.placement, "ClusterManagementAddOn": p.registration, "ManagedClusterAddOn": p.instance,
		"ManifestWork": p.work, "ManifestWorkReplicaSet": p.replicaSet, "ManagedClusterSetBinding": p.binding, "ManagedClusterSet": p.set,
	}[u.GetKind()]
	if !known {
		return nil, nil
	}
	found, err := look(ctx, u)
	for i := range found {
		found[i].Title = fleet.Describe(u) + ": " + found[i].Title
	}
	return found, err
}

func (p *preview) placement(ctx context.Context, u *unstructured.Unstructured) (_ []Finding, err error) {
	if p.placed == nil {
		if p.placed, err = p.readPlaced(ctx); err != nil {
			return nil, err
		}
	}
	one, err := typed.FromUnstructured[clusterv1beta1.Placement](u)
	if err != nil {
		return nil, err
	}
	return p.checking.placement(ctx, p.placed, one), nil
}

func (p *preview) readAddOns(ctx context.Context) (err error) {
	if p.addOns == nil {
		p.addOns, err = p.readAddOnFleet(ctx)
	}
	return err
}

func (p *preview) registration(ctx context.Context, u *unstructured.Unstructured) ([]Finding, error) {
	if err := p.readAddOns(ctx); err != nil {
		return nil, err
	}
	a, err := typed.FromUnstructured[addonv1alpha1.ClusterManagementAddOn](u)
	if err != nil {
		return nil, err
	}
	return append(p.strategy(p.addOns, a), p.templates(p.addOns, a)...), nil
}

func (p *preview) instance(ctx context.Context, u *unstructured.Unstructured) ([]Finding, error) {
	if err := p.readAddOns(ctx); err != nil {
		return nil, err
	}
	one, err := typed.FromUnstructured[addonv1alpha1.ManagedClusterAddOn](u)
	if err != nil {
		return nil, err
	}
	a := p.addOns.registered[one.Name]
	switch {
	case p.addOns.clusters[one.Namespace] == nil:
		return []Finding{p.noCluster(CodeAddOnCluster, one.Namespace)}, nil
	case a == nil:
		return []Finding{failure(CodeAddOnRegistered, "there is no ClusterManagementAddOn "+one.Name, "without it nothing of the add-on is deployed",
			RegisterAddOn.On(p.o.Hub, "addon", one.Name))}, nil
	case !addon.ManagedByHub(a):
		return nil, nil
	}
	var out []Finding
	for _, config := range one.Spec.Configs {
		supported := slices.ContainsFunc(a.Spec.SupportedConfigs, func(s addonv1alpha1.ConfigMeta) bool {
			return s.Group == config.Group && s.Resource == config.Resource
		})
		if !supported {
			out = append(out, failure(CodeAddOnConfig, "the add-on does not read "+strings.TrimSuffix(config.Resource+"."+config.Group, "."),
				"spec.supportedConfigs of its ClusterManagementAddOn does not name it", fleet.ShowAddOn.On(p.o.Hub, "addon", one.Name, "cluster", "")))
		}
	}
	return out, nil
}

func (p *preview) noCluster(code, name string) Finding {
	return failure(code, "there is no managed cluster "+name, "its namespace is that of the cluster that it is for", naming.ListClusters.On(p.o.Hub))
}

// readClusters reads the labels of the clusters, and the names of the sets.
func (p *preview) readClusters(ctx context.Context) error {
	if p.clusters != nil {
		return nil
	}
	var clusters, sets []unstructured.Unstructured
	err := fleet.ListTogether(ctx, p.o.Hub,
		fleet.Into(&clusters, fleet.Query{Resource: fleet.ManagedClusters}), fleet.Into(&sets, fleet.Query{Resource: fleet.ManagedClusterSets}))
	if err != nil {
		return err
	}
	p.overlay(&clusters, "ManagedCluster")
	p.overlay(&sets, "ManagedClusterSet")
	p.clusters, p.sets = map[string]map[string]string{}, map[string]bool{}
	for i := range clusters {
		p.clusters[clusters[i].GetName()] = clusters[i].GetLabels()
	}
	for i := range sets {
		p.sets[sets[i].GetName()] = true
	}
	return nil
}

func (p *preview) work(ctx context.Context, u *unstructured.Unstructured) ([]Finding, error) {
	if err := p.readClusters(ctx); err != nil {
		return nil, err
	}
	w, err := typed.FromUnstructured[workv1.ManifestWork](u)
	if err != nil {
		return nil, err
	}
	out := carried(&w.Spec)
	if _, there := p.clusters[w.Namespace]; !there {
		out = append(out, p.noCluster(CodeFileCluster, w.Namespace))
	}
	return out, nil
}

func (p *preview) replicaSet(ctx context.Context, u *unstructured.Unstructured) ([]Finding, error) {
	set, err := typed.FromUnstructured[workv1alpha1.ManifestWorkReplicaSet](u)
	if err != nil {
		return nil, err
	}
	places, err := fleet.ListAll(ctx, p.o.Hub, fleet.Query{Resource: fleet.Placements, Namespace: set.Namespace})
	if err != nil {
		return nil, err
	}
	p.overlay(&places, "Placement")
	out := carried(&set.Spec.ManifestWorkTemplate)
	for _, ref := range set.Spec.PlacementRefs {
		key := types.NamespacedName{Namespace: set.Namespace, Name: ref.Name}
		if !slices.ContainsFunc(places, func(u unstructured.Unstructured) bool {
			return u.GetName() == key.Name && u.GetNamespace() == key.Namespace
		}) {
			out = append(out, failure(CodeFilePlacement, "there is no placement "+key.String(), "spec.placementRefs names it: no cluster gets the work",
				CreatePlacement.On(p.o.Hub, "name", key.Name, "namespace", key.Namespace)))
		}
	}
	return out, nil
}

func (p *preview) binding(ctx context.Context, u *unstructured.Unstructured) ([]Finding, error) {
	if err := p.readClusters(ctx); err != nil {
		return nil, err
	}
	name, _, _ := unstructured.NestedString(u.Object, "spec", "clusterSet")
	if p.sets[name] {
		return nil, nil
	}
	return []Finding{warning(CodePlacementUnbound, "there is no cluster set "+name, "a binding to it selects nothing until there is one",
		placement.CreateSet.On(p.o.Hub, "set", name))}, nil
}

// set reports a set whose selector fits no cluster. One that clusters are put into may be empty.
func (p *preview) set(ctx context.Context, u *unstructured.Unstructured) ([]Finding, error) {
	if err := p.readClusters(ctx); err != nil {
		return nil, err
	}
	set, err := typed.FromUnstructured[clusterv1beta2.ManagedClusterSet](u)
	if err != nil || set.Spec.ClusterSelector.LabelSelector == nil || len(p.clusters) == 0 {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.ClusterSelector.LabelSelector)
	if err != nil {
		return nil, err
	}
	for _, own := range p.clusters {
		if selector.Matches(labels.Set(own)) {
			return nil, nil
		}
	}
	return []Finding{warning(CodePlacementEmpty, "its selector fits no cluster", selector.String(), naming.ListClusters.On(p.o.Hub))}, nil
}

// carried returns what is wrong with the objects of a work, and which of its rules are about none
// of them.
func carried(spec *workv1.ManifestWorkSpec) []Finding {
	var out []Finding
	var objects []*unstructured.Unstructured
	seen := map[string]bool{}
	for i, m := range spec.Workload.Manifests {
		u, at := &unstructured.Unstructured{}, fmt.Sprintf("manifests[%d]", i)
		if err := u.UnmarshalJSON(m.Raw); err != nil {
			out = append(out, failure(CodeManifests, at+" is no object", fleet.OneLine(err.Error()), fleet.Advice("correct it")))
			continue
		}
		if err := manifest.Check(u, at, ""); err != nil {
			out = append(out, unreadable(CodeManifests, err))
		}
		if key := u.GetAPIVersion() + "|" + fleet.Describe(u); seen[key] {
			out = append(out, failure(CodeManifests, at+" declares "+fleet.Describe(u)+" again", "an object appears in a work once",
				fleet.Advice("leave one of them out")))
		} else {
			seen[key] = true
		}
		objects = append(objects, u)
	}
	for i, config := range spec.ManifestConfigs {
		if id := config.ResourceIdentifier; !slices.ContainsFunc(objects, func(u *unstructured.Unstructured) bool { return names(id, u) }) {
			out = append(out, warning(CodeFileRules, fmt.Sprintf("manifestConfigs[%d] is about %s %s, which it does not declare", i, id.Resource,
				strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")), "its rules have no effect", fleet.Advice("correct resourceIdentifier")))
		}
	}
	return out
}

// names reports whether the identifier of a rule is about an object. The plural of a kind is a
// guess, so that it does not count.
func names(id workv1.ResourceIdentifier, u *unstructured.Unstructured) bool {
	name, errName := path.Match(id.Name, u.GetName())
	namespace, errNamespace := path.Match(id.Namespace, u.GetNamespace())
	return id.Group == u.GroupVersionKind().Group && name && namespace && errName == nil && errNamespace == nil
}
