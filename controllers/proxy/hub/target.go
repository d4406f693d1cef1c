// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/internal/service"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// target is what a path of the API means.
type target struct {
	// tunnel is true for the path at which the agent of the cluster opens its tunnel.
	tunnel  bool
	cluster string
	// service is the Service that the request is for; nil for the API server.
	service *service.Target
	// account is the ManagedServiceAccount that the client acts as; empty if it acts as itself.
	account string
	// path is that of the managed cluster's API or of the Service; it begins with a slash.
	path string
}

// parse reads a path in the same way as the hub's API server, which has authorized it: the name
// of the cluster is the element after the resource, or the namespace of one that is in a namespace. What
// could be read in two ways is not ok.
func parse(u *url.URL) (t target, ok bool) {
	// The API server encodes paths canonically; another encoding is not its own.
	rest, ours := strings.CutPrefix(u.Path, connectv1alpha1.PathVersion+"/")
	if u.RawPath != "" || u.Opaque != "" || !ours {
		return target{}, false
	}
	resource, rest, ok := t.cutNames(rest)
	sub, path, below := strings.Cut(rest, "/")
	if !ok || sub != connectv1alpha1.SubresourceProxy || len(validation.IsDNS1123Label(t.cluster)) > 0 || !isCanonical(path) {
		return target{}, false
	}
	switch resource {
	case connectv1alpha1.ResourceManagedClusters, connectv1alpha1.ResourceManagedServiceAccounts:
	case connectv1alpha1.ResourceClusterServices:
		if t.service, path, ok = parseService(path); !ok {
			return target{}, false
		}
	case connectv1alpha1.ResourceTunnels:
		if t.tunnel = true; below {
			return target{}, false
		}
	default:
		return target{}, false
	}
	t.path = "/" + path
	return t, true
}

// cutNames reads the resource and the names in a path, and returns what follows them.
func (t *target) cutNames(path string) (resource, rest string, ok bool) {
	resource, rest, _ = strings.Cut(path, "/")
	t.cluster, rest, _ = strings.Cut(rest, "/")
	if resource != "namespaces" {
		return resource, rest, resource != connectv1alpha1.ResourceManagedServiceAccounts
	}
	resource, rest, _ = strings.Cut(rest, "/")
	t.account, rest, _ = strings.Cut(rest, "/")
	return resource, rest, resource == connectv1alpha1.ResourceManagedServiceAccounts && len(validation.IsDNS1123Subdomain(t.account)) == 0
}

// parseService reads the Service that a path begins with, and returns what is left of the path.
func parseService(path string) (is *service.Target, rest string, ok bool) {
	namespace, rest, _ := strings.Cut(path, "/")
	element, rest, _ := strings.Cut(rest, "/")
	t, ok := service.Parse(namespace, element)
	return &t, rest, ok
}

// isCanonical reports whether no part of the way would resolve the path to another one.
func isCanonical(path string) bool {
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
		return false
	}
	elements := strings.Split(path, "/")
	if last := len(elements) - 1; elements[last] == "" {
		elements = elements[:last] // one slash at the end, or no path at all
	}
	return !slices.ContainsFunc(elements, func(e string) bool { return e == "" || e == "." || e == ".." })
}
