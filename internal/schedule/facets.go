// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-ocm/kubectl-ocm/internal/cel"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// facet is a part of a ManagedCluster that a placement may read. A change that no
// placement reads wakes none, and costs no evaluation.
type facet uint16

const (
	// anyLabel and anyClaim are for expressions that read all of them; selectors name
	// keys.
	anyLabel facet = 1 << iota
	anyClaim
	taints
	deletion
	cpu
	memory
	resources
	conditions
	annotations
	version
	otherMetadata
	otherSpec
	otherStatus
	facets = iota

	everything facet = 1<<facets - 1
)

// change is what differs between two states of a cluster.
type change struct {
	mask facet
	// labels and claims are the keys whose values differ.
	labels, claims []string
}

// reads is what a placement reads of its clusters.
type reads struct {
	mask           facet
	labels, claims []string
}

// touches reports whether a placement reads something that changed.
func (r *reads) touches(c *change) bool {
	return r.mask&c.mask != 0 || intersect(r.labels, c.labels) || intersect(r.claims, c.claims)
}

func intersect(a, b []string) bool {
	for _, one := range a {
		if slices.Contains(b, one) {
			return true
		}
	}
	return false
}

// difference returns the change between two states of a cluster with the same UID.
func difference(old, now *clusterv1.ManagedCluster) change {
	c := change{mask: otherMetadata, labels: differingLabels(old.Labels, now.Labels)}
	note := func(f facet, same bool) {
		if !same {
			c.mask |= f
		}
	}
	note(anyLabel, len(c.labels) == 0)
	if !slices.Equal(old.Status.ClusterClaims, now.Status.ClusterClaims) {
		c.mask |= anyClaim
		c.claims = differingClaims(old.Status.ClusterClaims, now.Status.ClusterClaims)
	}
	note(taints, slices.EqualFunc(old.Spec.Taints, now.Spec.Taints, func(a, b clusterv1.Taint) bool {
		return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(b.TimeAdded)
	}))
	note(deletion, (old.DeletionTimestamp == nil) == (now.DeletionTimestamp == nil))
	if !reflect.DeepEqual(old.Status.Allocatable, now.Status.Allocatable) || !reflect.DeepEqual(old.Status.Capacity, now.Status.Capacity) {
		c.mask |= resources
		note(cpu, sameAllocatable(old, now, clusterv1.ResourceCPU))
		note(memory, sameAllocatable(old, now, clusterv1.ResourceMemory))
	}
	note(conditions, reflect.DeepEqual(old.Status.Conditions, now.Status.Conditions))
	note(annotations, reflect.DeepEqual(old.Annotations, now.Annotations))
	note(version, old.Status.Version == now.Status.Version)
	note(otherSpec, old.Spec.HubAcceptsClient == now.Spec.HubAcceptsClient && old.Spec.LeaseDurationSeconds == now.Spec.LeaseDurationSeconds &&
		reflect.DeepEqual(old.Spec.ManagedClusterClientConfigs, now.Spec.ManagedClusterClientConfigs))
	note(otherStatus, reflect.DeepEqual(old.Status.ManagedNamespaces, now.Status.ManagedNamespaces))
	return c
}

func sameAllocatable(old, now *clusterv1.ManagedCluster, name clusterv1.ResourceName) bool {
	a, hadA := allocatable(old, name)
	b, hadB := allocatable(now, name)
	return a == b && hadA == hadB
}

func differingLabels(old, now map[string]string) []string {
	var out []string
	for key, value := range old {
		if other, has := now[key]; !has || other != value {
			out = append(out, key)
		}
	}
	for key := range now {
		if _, had := old[key]; !had {
			out = append(out, key)
		}
	}
	return out
}

func differingClaims(old, now claims) []string {
	var out []string
	for _, list := range []claims{old, now} {
		for _, one := range list {
			a, had := old.Lookup(one.Name)
			b, has := now.Lookup(one.Name)
			if a != b || had != has {
				out = append(out, one.Name)
			}
		}
	}
	return out
}

func keysOf(s labels.Selector) []string {
	if s == nil {
		return nil
	}
	var out []string
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		out = append(out, r.Key())
	}
	return out
}

// verdictReads returns what the predicates of a program read, and the scores that their
// expressions read: by name, or any.
func (p *program) verdictReads() (r reads, scores []string, anyScore bool) {
	for _, one := range p.predicates {
		r.labels = append(r.labels, keysOf(one.labels)...)
		r.claims = append(r.claims, keysOf(one.claims)...)
		for _, e := range one.expressions {
			if e.program == nil {
				continue
			}
			uses := e.program.Reads(variable)
			r.expression(uses)
			for _, call := range uses.Calls {
				switch {
				case call.Function != scoresFunction:
					r.mask |= everything
				case call.Constant:
					scores = append(scores, call.Text)
				default:
					anyScore = true
				}
			}
			// An expression that passes the whole cluster on may read any score.
			anyScore = anyScore || uses.Whole
		}
	}
	return r, scores, anyScore
}

// expression adds what an expression reads.
func (r *reads) expression(uses cel.Reference) {
	if uses.Whole {
		r.mask |= everything
	}
	for _, path := range uses.Paths {
		switch {
		case len(path) > 2 && path[0] == "metadata" && path[1] == "labels":
			r.labels = append(r.labels, path[2])
		case len(path) > 1:
			r.mask |= facetOf(path[0], path[1])
		default:
			r.mask |= everything
		}
	}
}

// fields are the facets that expressions read by the path of a field; paths that are not
// listed here belong to one of the other facets.
var fields = map[[2]string]facet{
	{"metadata", "labels"}:            anyLabel,
	{"metadata", "annotations"}:       annotations,
	{"metadata", "name"}:              0, // never changes, nor do the next ones
	{"metadata", "uid"}:               0,
	{"metadata", "creationTimestamp"}: 0,
	{"spec", "taints"}:                taints,
	{"status", "clusterClaims"}:       anyClaim,
	{"status", "allocatable"}:         resources,
	{"status", "capacity"}:            resources,
	{"status", "conditions"}:          conditions,
	{"status", "version"}:             version,
}

func facetOf(part, field string) facet {
	if f, known := fields[[2]string{part, field}]; known {
		return f
	}
	switch part {
	case "metadata":
		return otherMetadata
	case "spec":
		return otherSpec
	case "status":
		return otherStatus
	}
	return 0 // no such part
}

// wakeReads returns everything that a program reads of clusters.
func (p *program) wakeReads() reads {
	r, _, _ := p.verdictReads()
	r.mask |= taints | deletion
	for _, one := range p.prioritizers {
		switch one.kind {
		case allocatableCPU:
			r.mask |= cpu
		case allocatableMemory:
			r.mask |= memory
		}
	}
	for _, g := range p.groups {
		r.labels = append(r.labels, keysOf(g.labels)...)
		r.claims = append(r.claims, keysOf(g.claims)...)
	}
	for i := range p.spread {
		if t := &p.spread[i]; t.TopologyKeyType == clusterv1beta1.TopologyKeyTypeClaim {
			r.claims = append(r.claims, t.TopologyKey)
		} else {
			r.labels = append(r.labels, t.TopologyKey)
		}
	}
	return r
}
