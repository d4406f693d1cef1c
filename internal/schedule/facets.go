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

// parts are parts of a cluster: those that a placement reads, or that differ between two
// states.
type parts struct {
	mask facet
	// labels and claims are keys.
	labels, claims []string
}

// touch reports whether two sets of parts have something in common.
func (p *parts) touch(other *parts) bool {
	return p.mask&other.mask != 0 || intersect(p.labels, other.labels) || intersect(p.claims, other.claims)
}

func intersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(one string) bool { return slices.Contains(b, one) })
}

// difference returns the change between two states of a cluster with the same UID.
func difference(old, now *clusterv1.ManagedCluster) parts {
	c := parts{mask: otherMetadata, labels: differing(old.Labels, now.Labels)}
	note := func(f facet, same bool) {
		if !same {
			c.mask |= f
		}
	}
	note(anyLabel, len(c.labels) == 0)
	if !slices.Equal(old.Status.ClusterClaims, now.Status.ClusterClaims) {
		c.mask |= anyClaim
		c.claims = differing(claims(old.Status.ClusterClaims).values(), claims(now.Status.ClusterClaims).values())
	}
	note(taints, slices.EqualFunc(old.Spec.Taints, now.Spec.Taints, func(a, b clusterv1.Taint) bool {
		return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(b.TimeAdded)
	}))
	note(deletion, (old.DeletionTimestamp == nil) == (now.DeletionTimestamp == nil))
	if !reflect.DeepEqual(old.Status.Allocatable, now.Status.Allocatable) || !reflect.DeepEqual(old.Status.Capacity, now.Status.Capacity) {
		c.mask |= resources
		note(cpu, allocatable(old, clusterv1.ResourceCPU) == allocatable(now, clusterv1.ResourceCPU))
		note(memory, allocatable(old, clusterv1.ResourceMemory) == allocatable(now, clusterv1.ResourceMemory))
	}
	note(conditions, reflect.DeepEqual(old.Status.Conditions, now.Status.Conditions))
	note(annotations, reflect.DeepEqual(old.Annotations, now.Annotations))
	note(version, old.Status.Version == now.Status.Version)
	note(otherSpec, old.Spec.HubAcceptsClient == now.Spec.HubAcceptsClient && old.Spec.LeaseDurationSeconds == now.Spec.LeaseDurationSeconds &&
		reflect.DeepEqual(old.Spec.ManagedClusterClientConfigs, now.Spec.ManagedClusterClientConfigs))
	note(otherStatus, reflect.DeepEqual(old.Status.ManagedNamespaces, now.Status.ManagedNamespaces))
	return c
}

// differing returns the keys with another value.
func differing(old, now map[string]string) []string {
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

func keysOf(s labels.Selector) []string {
	var out []string
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		out = append(out, r.Key())
	}
	return out
}

// anyScore stands for the names of all scores.
const anyScore = ""

// verdictReads returns what the predicates of a program read, and the names of the scores
// that their expressions read.
func (c *program) verdictReads() (r parts, scores []string) {
	for _, one := range c.predicates {
		r.keys(one.selectors)
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
					scores = append(scores, anyScore)
				}
			}
			if uses.Whole { // which may read any score
				scores = append(scores, anyScore)
			}
		}
	}
	return r, scores
}

// keys adds what selectors read.
func (p *parts) keys(s selectors) {
	p.labels = append(p.labels, keysOf(s.labels)...)
	p.claims = append(p.claims, keysOf(s.claims)...)
}

// expression adds what an expression reads.
func (p *parts) expression(uses cel.Reference) {
	if uses.Whole {
		p.mask |= everything
	}
	for _, path := range uses.Paths {
		switch {
		case len(path) > 2 && path[0] == "metadata" && path[1] == "labels":
			p.labels = append(p.labels, path[2])
		case len(path) > 1:
			p.mask |= facetOf(path[0], path[1])
		default:
			p.mask |= everything
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
func (c *program) wakeReads() parts {
	r, _ := c.verdictReads()
	r.mask |= taints | deletion
	for _, one := range c.prioritizers {
		switch one.Name {
		case clusterv1beta1.PrioritizerResourceAllocatableCPU:
			r.mask |= cpu
		case clusterv1beta1.PrioritizerResourceAllocatableMemory:
			r.mask |= memory
		}
	}
	for _, g := range c.groups {
		r.keys(g.selectors)
	}
	for i := range c.spread {
		if t := &c.spread[i]; t.TopologyKeyType == clusterv1beta1.TopologyKeyTypeClaim {
			r.claims = append(r.claims, t.TopologyKey)
		} else {
			r.labels = append(r.labels, t.TopologyKey)
		}
	}
	return r
}
