// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// target is what a path of the API means.
type target struct {
	// tunnel is true for the path at which the agent of the cluster opens its tunnel.
	tunnel  bool
	cluster string
	// path is that of the managed cluster's API; it begins with a slash.
	path string
}

// parse reads a path in the same way as the hub's API server, which has authorized it: the name
// of the cluster is the element after the resource. What could be read in two ways is not ok.
func parse(u *url.URL) (t target, ok bool) {
	// The API server encodes paths canonically; another encoding is not its own.
	if u.RawPath != "" || u.Opaque != "" {
		return target{}, false
	}
	rest, clusters := strings.CutPrefix(u.Path, connectv1alpha1.PathManagedClusters)
	if !clusters {
		if rest, t.tunnel = strings.CutPrefix(u.Path, connectv1alpha1.PathTunnels); !t.tunnel {
			return target{}, false
		}
	}
	t.cluster, rest, _ = strings.Cut(rest, "/")
	sub, path, below := strings.Cut(rest, "/")
	t.path = "/" + path
	switch {
	case sub != connectv1alpha1.SubresourceProxy || len(validation.IsDNS1123Label(t.cluster)) > 0:
		return target{}, false
	case t.tunnel && below:
		return target{}, false
	case !isCanonical(path):
		return target{}, false
	}
	return t, true
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
