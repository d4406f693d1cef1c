// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// AddToScheme registers the kind that this package caches in full. For the other kinds of its
// group the hub caches less than the API types hold.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(addonv1alpha1.GroupVersion, &addonv1alpha1.ClusterManagementAddOn{}, &addonv1alpha1.ClusterManagementAddOnList{})
	metav1.AddToGroupVersion(s, addonv1alpha1.GroupVersion)
	return nil
}

// Managed reports whether the hub, and not the add-on's own controller, installs an add-on
// and rolls out its configurations.
func Managed(addOn *addonv1alpha1.ClusterManagementAddOn) bool {
	lifecycle, given := addOn.Annotations[addonv1alpha1.AnnotationLifecycle]
	return !given || lifecycle == addonv1alpha1.LifecycleAddOnManager
}

// ByPlacements reports whether placements select the clusters of an add-on.
func ByPlacements(addOn *addonv1alpha1.ClusterManagementAddOn) bool {
	return addOn.Spec.InstallStrategy.Type == addonv1alpha1.InstallStrategyPlacements
}

// Index indexes all ClusterManagementAddOns by what they refer to, and reports which of them
// a change concerns. It holds what matters to add-ons of all clusters.
type Index struct {
	// selects reports whether a cluster is among the decisions of a placement.
	selects func(ctx context.Context, of addonv1alpha1.PlacementRef, cluster string) (bool, error)
	concern []func(name string)

	mu       sync.Mutex
	addOns   map[string]*addonv1alpha1.ClusterManagementAddOn
	clusters map[string]Cluster
}

// NewIndex returns an Index that watches through m.
func NewIndex(m *manager.Manager) *Index {
	x := &Index{selects: decided(m.Reader()), addOns: map[string]*addonv1alpha1.ClusterManagementAddOn{}, clusters: map[string]Cluster{}}
	manager.Watch(m, &addonv1alpha1.ClusterManagementAddOn{}, x.addOnChanged)
	manager.Watch(m, &clusterv1beta1.Placement{}, func(old, current *clusterv1beta1.Placement) {
		o := cmp.Or(current, old)
		if old == nil || current == nil || old.Generation != current.Generation {
			x.tell(x.selecting(o.Namespace, o.Name))
		}
	})
	manager.Watch(m, &clusterv1beta1.PlacementDecision{}, func(old, current *clusterv1beta1.PlacementDecision) {
		o := cmp.Or(current, old)
		x.tell(x.selecting(o.Namespace, o.Labels[clusterv1beta1.LabelPlacement]))
	})
	manager.Watch(m, &clusterv1.ManagedCluster{}, x.clusterChanged)
	return x
}

// OnConcern registers a function that is called with the name of each add-on that a change
// concerns. OnConcern must be called before the manager runs, and the function must not
// block.
func (x *Index) OnConcern(f func(name string)) { x.concern = append(x.concern, f) }

func (x *Index) addOnChanged(old, current *addonv1alpha1.ClusterManagementAddOn) {
	name := cmp.Or(current, old).Name
	x.mu.Lock()
	if current == nil {
		delete(x.addOns, name)
	} else {
		x.addOns[name] = current
	}
	x.mu.Unlock()
	x.tell([]string{name})
}

func (x *Index) tell(names []string) {
	for _, name := range names {
		for _, f := range x.concern {
			f(name)
		}
	}
}

// matching returns the names of the add-ons for which like returns true, sorted.
func (x *Index) matching(like func(*addonv1alpha1.ClusterManagementAddOn) bool) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []string
	for name, a := range x.addOns {
		if like(a) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (x *Index) selecting(namespace, placement string) []string {
	return x.matching(func(a *addonv1alpha1.ClusterManagementAddOn) bool {
		return ByPlacements(a) && slices.ContainsFunc(a.Spec.InstallStrategy.Placements, func(p addonv1alpha1.PlacementStrategy) bool {
			return p.Namespace == namespace && p.Name == placement
		})
	})
}

// Naming returns the names of the add-ons that name a configuration, sorted.
func (x *Index) Naming(c addonv1alpha1.AddOnConfig) []string {
	return x.matching(func(a *addonv1alpha1.ClusterManagementAddOn) bool {
		return slices.Contains(config.Defaults(a.Spec), c) || slices.ContainsFunc(a.Spec.InstallStrategy.Placements, func(p addonv1alpha1.PlacementStrategy) bool {
			return slices.Contains(p.Configs, c)
		})
	})
}

// Key returns the key of an add-on in the loops.
func Key(name string) reconcile.Key { return reconcile.Key{Name: name} }
