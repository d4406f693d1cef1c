// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"maps"
	"slices"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// maxRecheck is the longest time until a rollout that waits for a deadline is checked again.
const maxRecheck = 10 * time.Minute

// Instance is the add-on on one cluster, with its works.
type Instance struct {
	instance.AddOn
	Works []instance.Work
}

// State is the input of Decide.
type State struct {
	// AddOn is the ClusterManagementAddOn.
	AddOn *addonv1alpha1.ClusterManagementAddOn
	// Placements are the placements of its install strategy, in its order.
	Placements []selection.Placement
	// Instances are all ManagedClusterAddOns with its name.
	Instances []Instance
	// Clusters are the selected ManagedClusters that exist.
	Clusters map[string]selection.Cluster
	// Contents holds the known contents of the configurations that are named.
	Contents map[addonv1alpha1.AddOnConfig]config.Content
	// Now is the time of the decision.
	Now time.Time
}

// known implements config.Lookup.
func (s State) known(c addonv1alpha1.AddOnConfig) (config.Content, bool) {
	content, ok := s.Contents[c]
	return content, ok
}

// Decide returns the status writes for the add-on and its instances. It is a pure function.
func Decide(s State) reconcile.Plan {
	addOn := s.AddOn.DeepCopy()
	plan := reconcile.Plan{Object: addOn, Order: reconcile.Parallel}
	if addOn.DeletionTimestamp != nil {
		return plan
	}
	addOn.Status.DefaultConfigReferences = config.DefaultReferences(s.AddOn, s.known)
	if !selection.Managed(addOn) {
		return plan
	}
	d := newDelivery(s, addOn.Status.DefaultConfigReferences)
	for i := range s.Placements {
		d.rollOut(i)
	}
	if !selection.ByPlacements(addOn) {
		for _, m := range d.members {
			m.assign(d.desired(m, -1), s.Now)
		}
	}
	addOn.Status.InstallProgressions = nil
	for i := range s.Placements {
		d.report(i)
		addOn.Status.InstallProgressions = append(addOn.Status.InstallProgressions, d.progressions[i])
	}
	for _, cluster := range slices.Sorted(maps.Keys(d.members)) {
		if patch, changed := d.members[cluster].patch(); changed {
			plan.Writes = append(plan.Writes, patch)
		}
	}
	plan.Events = d.events
	plan.RequeueAfter = min(d.recheck, maxRecheck)
	return plan
}

// delivery computes the next status of each instance.
type delivery struct {
	State
	members map[string]*member
	// leaving holds the clusters whose instance is being deleted.
	leaving map[string]bool
	// claims maps each cluster to its placement: the last one that selects it.
	claims       map[string]int
	defaults     []addonv1alpha1.AddOnConfig
	progressions []addonv1alpha1.InstallProgression
	// hashes holds the hashes of each placement, and at the end those of the defaults alone.
	hashes []config.Hashes
	plans  []rollout.Plan
	// taking holds how many clusters of each placement take part in its rollout.
	taking  []int
	recheck time.Duration
	events  []reconcile.Event
}

func newDelivery(s State, defaults []addonv1alpha1.DefaultConfigReference) *delivery {
	d := &delivery{
		State: s, members: map[string]*member{}, leaving: map[string]bool{}, claims: map[string]int{}, defaults: config.Defaults(s.AddOn.Spec),
		plans: make([]rollout.Plan, len(s.Placements)), taking: make([]int, len(s.Placements)),
	}
	for i, p := range s.Placements {
		progression := config.Progression(s.AddOn, p.PlacementStrategy, s.known)
		d.progressions = append(d.progressions, progression)
		d.hashes = append(d.hashes, config.Shared(defaults, progression))
		if !p.Usable() {
			continue
		}
		for _, c := range p.Clusters {
			d.claims[c] = i
		}
	}
	d.hashes = append(d.hashes, config.Shared(defaults))
	for _, one := range s.Instances {
		if one.Deleting {
			d.leaving[one.Cluster] = true
		} else {
			d.members[one.Cluster] = newMember(one, s.known, s.Now)
		}
	}
	return d
}

// desired returns the configurations that the add-on should use on a cluster of the
// placement; -1 means no placement.
func (d *delivery) desired(m *member, placement int) []config.Desired {
	var of []addonv1alpha1.AddOnConfig
	hashes := d.hashes[len(d.hashes)-1]
	if placement >= 0 {
		of, hashes = d.Placements[placement].Configs, d.hashes[placement]
	}
	return config.ByCluster(config.Effective(m.Configs, of, d.defaults), m.Configs, m.refs, m.known, hashes)
}

// rollOut decides for the clusters of one placement.
func (d *delivery) rollOut(i int) {
	p := d.Placements[i]
	if !p.Usable() {
		return
	}
	var clusters []rollout.Cluster
	desired := map[string][]config.Desired{}
	groups := make([]rollout.Group, 0, len(p.Groups))
	for _, g := range p.Groups {
		own := rollout.Group{Name: g.Name, Index: g.Index}
		for _, name := range g.Clusters {
			if d.claims[name] != i {
				continue
			}
			own.Clusters = append(own.Clusters, name)
			m, installed := d.members[name]
			// A cluster that still lacks an instance counts as waiting: it may be first in
			// line.
			takes := d.Clusters[name].Takes(d.AddOn.Name) && !d.leaving[name]
			switch {
			case !takes:
				clusters = append(clusters, rollout.Cluster{Name: name, Status: rollout.Skip})
				continue
			case installed:
				desired[name] = d.desired(m, i)
				clusters = append(clusters, m.state(desired[name]))
			}
			d.taking[i]++
		}
		groups = append(groups, own)
	}
	resumed, first := d.resume(i)
	plan := p.Strategy.Resumed(resumed).Plan(groups, clusters, d.Now)
	d.recordResumed(i, first, plan.TimedOut)
	d.plans[i] = plan
	for _, name := range slices.Concat(plan.Start, plan.InFlight, plan.Done, plan.TimedOut) {
		if m := d.members[name]; m != nil {
			m.assign(desired[name], d.Now)
		}
	}
	for _, name := range plan.Waiting {
		if m := d.members[name]; m != nil {
			m.hold(d.Now)
		}
	}
	if plan.Recheck > 0 && (d.recheck == 0 || plan.Recheck < d.recheck) {
		d.recheck = plan.Recheck
	}
}
