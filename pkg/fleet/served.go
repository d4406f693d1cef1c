// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// served are the kinds that a cluster serves, group by group as it names them.
type served struct {
	cluster *Cluster
	groups  []*restmapper.APIGroupResources
}

// servedKind is one of them.
type servedKind struct {
	resource   schema.GroupVersionResource
	kind       string
	namespaced bool
}

// kinds asks what the cluster serves, in two requests where it can tell all at
// once. A group whose own API server does not answer is left out.
func (c *Cluster) kinds() (*served, error) {
	config := rest.CopyConfig(c.Config)
	if config.Timeout == 0 {
		config.Timeout = reachTimeout
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", c, err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return nil, explain("reading what kinds "+c.String()+" serves", c, err)
	}
	return &served{c, groups}, nil
}

// named finds what a person names as for kubectl get: by plural, singular, kind
// or short name, and where that is needed with group, or version and group,
// behind a dot. Of several groups the first that the cluster names wins.
func (s *served) named(word string) (servedKind, error) {
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
	return servedKind{}, &Error{Message: fmt.Sprintf("%s has no resource type %q", s.cluster, word), Fix: "kubectl api-resources" + s.cluster.flag()}
}

// of finds the resource of a kind; false when the cluster does not serve it.
func (s *served) of(gvk schema.GroupVersionKind) (servedKind, bool) {
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
	return servedKind{}, false
}

// versionsOf are the versions of a group, the preferred one first.
func versionsOf(g *restmapper.APIGroupResources) []string {
	out := []string{g.Group.PreferredVersion.Version}
	for _, v := range g.Group.Versions {
		if v.Version != out[0] {
			out = append(out, v.Version)
		}
	}
	return out
}

// isObject tells objects from subresources and from what can only be posted.
func isObject(r metav1.APIResource) bool {
	return !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "get")
}

func mapped(group, version string, r metav1.APIResource) servedKind {
	return servedKind{schema.GroupVersionResource{Group: group, Version: version, Resource: r.Name}, r.Kind, r.Namespaced}
}
