// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// state is what a hub consists of now.
type state struct {
	// managers are the ClusterManagers.
	managers []operatorv1.ClusterManager
	// operator is the Deployment of the other operator; nil when it has ended. ours is the
	// Deployment of our process, which has the same name.
	operator, ours *appsv1.Deployment
	// record is that of an adoption; nil when there was none.
	record *record
	// installed are the objects that our installer applies, by key.
	installed map[string]*unstructured.Unstructured
	// live are the objects that exist, of those that an adoption knows, by key.
	live map[string]*unstructured.Unstructured
	// counts are the numbers of what stays, by kind.
	counts []fleet.Planned
}

// gather reads the state.
func gather(ctx context.Context, c *fleet.Cluster) (*state, error) {
	s := &state{live: map[string]*unstructured.Unstructured{}, installed: map[string]*unstructured.Unstructured{}}
	if err := s.readManagers(ctx, c); err != nil {
		return nil, err
	}
	d, err := hub.Deployment(ctx, c)
	if err != nil {
		return nil, err
	}
	if hub.OthersHub(d) {
		s.operator = d
	} else {
		s.ours = d
	}
	if s.record, err = readRecord(ctx, c); err != nil {
		return nil, err
	}
	return s, s.readLive(ctx, c)
}

func (s *state) readManagers(ctx context.Context, c *fleet.Cluster) error {
	items, err := fleet.ListAll(ctx, c, fleet.Query{Resource: fleet.ClusterManagers})
	if err != nil {
		return fleet.Explain("listing clustermanagers", c, err)
	}
	for i := range items {
		cm, err := typed.FromUnstructured[operatorv1.ClusterManager](&items[i])
		if err != nil {
			return fleet.Explain("reading "+fleet.Describe(&items[i]), c, err)
		}
		s.managers = append(s.managers, *cm)
	}
	return nil
}

// readLive reads every object that our hub, or the other one, may consist of.
func (s *state) readLive(ctx context.Context, c *fleet.Cluster) error {
	ours, err := config.Objects(config.Options{Image: "any"})
	if err != nil {
		return err
	}
	known, err := processParts()
	if err != nil {
		return err
	}
	for _, u := range append(ours, hub.PublishedObjects()...) {
		s.installed[key(u)] = u
		known = append(known, u)
	}
	known = append(known, kept()...)
	for _, p := range otherParts() {
		known = append(known, p.object)
	}
	for _, u := range known {
		live, err := write.Live(ctx, c, u)
		if err != nil {
			return fleet.Explain("reading "+fleet.Describe(u), c, err)
		}
		if live != nil {
			s.live[key(live)] = live
		}
	}
	return nil
}

// count counts what an adoption leaves alone.
func (s *state) count(ctx context.Context, c *fleet.Cluster) error {
	for _, k := range []struct {
		resource schema.GroupVersionResource
		kind     string
	}{
		{fleet.ManagedClusters, "ManagedCluster"}, {fleet.ManagedClusterSets, "ManagedClusterSet"}, {fleet.SetBindings, "ManagedClusterSetBinding"},
		{fleet.Placements, "Placement"}, {fleet.ManifestWorks, "ManifestWork"}, {fleet.ReplicaSets, "ManifestWorkReplicaSet"},
		{fleet.ManagementAddOns, "ClusterManagementAddOn"}, {fleet.ClusterAddOns, "ManagedClusterAddOn"}, {fleet.SigningRequests, "CertificateSigningRequest"},
	} {
		items, err := fleet.ListAll(ctx, c, fleet.Query{Resource: k.resource})
		if err != nil {
			return fleet.Explain("listing "+k.resource.Resource, c, err)
		}
		all := fleet.Named(k.resource.GroupVersion().WithKind(k.kind), "", "*")
		s.counts = append(s.counts, fleet.Planned{Object: all, Fate: fleet.Kept, Note: fleet.Many(len(items), "object")})
	}
	return nil
}

// others returns the live parts of the other hub with a role, but for what ours has under the
// same name.
func (s *state) others(r role) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, p := range otherParts() {
		if live := s.live[key(p.object)]; live != nil && p.role == r && !isOurs(live) && s.installed[key(live)] == nil {
			out = append(out, live)
		}
	}
	return out
}

// resumes reports whether an adoption has begun: its record is of the operator that is, or was,
// on this hub.
func (s *state) resumes() bool {
	return s.record != nil && (s.operator == nil || string(s.operator.UID) == s.record.operator)
}

// foreign reports whether anything of another hub is left.
func (s *state) foreign() bool {
	return s.operator != nil || len(s.others(deciding))+len(s.others(admitting))+len(s.others(passive)) > 0
}

// retyped returns the Services that ours has as another type, which cannot be changed in place.
func (s *state) retyped() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for k, wanted := range s.installed {
		live := s.live[k]
		if live == nil || live.GetKind() != "Service" {
			continue
		}
		have, _, _ := unstructured.NestedString(live.Object, "spec", "type")
		want, _, _ := unstructured.NestedString(wanted.Object, "spec", "type")
		if (have == "ExternalName") != (want == "ExternalName") {
			out = append(out, live)
		}
	}
	return out
}
