// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Served are the kinds that a cluster serves, by group in the cluster's order.
type Served struct {
	cluster *Cluster
	groups  []*restmapper.APIGroupResources
}

// ServedKind is one of them.
type ServedKind struct {
	// Resource is the kind's resource, Kind its group, version and kind.
	Resource schema.GroupVersionResource
	Kind     string
	// Namespaced reports whether its objects are in a namespace.
	Namespaced bool
}

// Kinds reads what the cluster serves, in two requests if it supports aggregated discovery. A
// group whose own API server does not answer is left out.
func (c *Cluster) Kinds() (*Served, error) {
	config := rest.CopyConfig(c.Config)
	if config.Timeout == 0 {
		config.Timeout = ReachTimeout
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", c, err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return nil, Explain("reading what kinds "+c.String()+" serves", c, err)
	}
	return &Served{c, groups}, nil
}

// Named finds a kind by a name as for kubectl get: plural, singular, kind or short name,
// optionally with group, or version and group, after a dot. Of several groups the first in the
// cluster's order wins.
func (s *Served) Named(word string) (ServedKind, error) {
	name, rest, _ := strings.Cut(strings.ToLower(word), ".")
	for _, g := range s.groups {
		for _, version := range versionsOf(g) {
			if rest != "" && rest != g.Group.Name && rest != strings.TrimSuffix(version+"."+g.Group.Name, ".") {
				continue
			}
			for _, r := range g.VersionedResources[version] {
				if isObject(r) && (r.Name == name || r.SingularName == name || strings.EqualFold(r.Kind, name) || slices.Contains(r.ShortNames, name)) {
					return mapped(g.Group.Name, version, r), nil
				}
			}
		}
	}
	return ServedKind{}, &Error{Message: fmt.Sprintf("%s has no resource type %q", s.cluster, word), Fix: ListKinds.On(s.cluster)}
}

// Of returns the resource of a kind; false when the cluster does not serve it.
func (s *Served) Of(gvk schema.GroupVersionKind) (ServedKind, bool) {
	for _, g := range s.groups {
		if g.Group.Name != gvk.Group {
			continue
		}
		for _, r := range g.VersionedResources[gvk.Version] {
			if r.Kind == gvk.Kind && isObject(r) {
				return mapped(gvk.Group, gvk.Version, r), true
			}
		}
	}
	return ServedKind{}, false
}

// versionsOf returns the versions of a group, the preferred one first.
func versionsOf(g *restmapper.APIGroupResources) []string {
	out := []string{g.Group.PreferredVersion.Version}
	for _, v := range g.Group.Versions {
		if v.Version != out[0] {
			out = append(out, v.Version)
		}
	}
	return out
}

// isObject reports whether a resource has objects, unlike subresources and resources that only
// accept POST.
func isObject(r metav1.APIResource) bool {
	return !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "get")
}

func mapped(group, version string, r metav1.APIResource) ServedKind {
	return ServedKind{schema.GroupVersionResource{Group: group, Version: version, Resource: r.Name}, r.Kind, r.Namespaced}
}

// Served returns the version under which a resource can be read; see apply.Served.
func (s *Served) Served(_ context.Context, gvr schema.GroupVersionResource) (schema.GroupVersionResource, bool, error) {
	kind, err := s.Named(gvr.GroupResource().String())
	return kind.Resource, err == nil, nil
}
