// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPathsHaveOneMeaning(t *testing.T) {
	const api = "/apis/connect.open-cluster-management.io/v1alpha1"
	for path, want := range map[string]target{
		api + "/managedclusters/c1/proxy":                      {cluster: "c1", path: "/"},
		api + "/managedclusters/c1/proxy/":                     {cluster: "c1", path: "/"},
		api + "/managedclusters/c1/proxy/api/v1/pods":          {cluster: "c1", path: "/api/v1/pods"},
		api + "/managedclusters/c1/proxy/api/v1/s/x/proxy/a/":  {cluster: "c1", path: "/api/v1/s/x/proxy/a/"},
		api + "/managedclusters/c1/proxy/managedclusters/c2":   {cluster: "c1", path: "/managedclusters/c2"},
		api + "/managedclusters/c1/proxy/a...b/..c":            {cluster: "c1", path: "/a...b/..c"},
		api + "/tunnels/c1/proxy":                              {cluster: "c1", path: "/", tunnel: true},
		api + "/managedclusters/c1/proxy/api/v1/with%20blanks": {cluster: "c1", path: "/api/v1/with blanks"},
	} {
		u, err := url.Parse("https://hub" + path)
		require.NoError(t, err)
		got, ok := parse(u)
		require.True(t, ok, path)
		require.Equal(t, want, got, path)
	}
	for name, path := range map[string]string{
		"to the parent":          api + "/managedclusters/c1/proxy/../../c2/proxy/api",
		"to itself":              api + "/managedclusters/c1/proxy/./api",
		"two slashes":            api + "/managedclusters/c1/proxy//api",
		"two slashes before":     api + "//managedclusters/c1/proxy/api",
		"two slashes at the end": api + "/managedclusters/c1/proxy/api//",
		"an encoded slash":       api + "/managedclusters/c1%2F..%2Fc2/proxy/api",
		"an encoded slash below": api + "/managedclusters/c1/proxy/a%2Fb",
		"encoded dots":           api + "/managedclusters/c1/proxy/%2e%2e/api",
		"a backslash":            api + `/managedclusters/c1/proxy/a\b`,
		"a line break":           api + "/managedclusters/c1/proxy/a%0ab",
		"no cluster":             api + "/managedclusters//proxy/api",
		"a parent as cluster":    api + "/managedclusters/../proxy/api",
		"upper case":             api + "/managedclusters/C1/proxy/api",
		"dots in the name":       api + "/managedclusters/c.1/proxy/api",
		"another subresource":    api + "/managedclusters/c1/status",
		"no subresource":         api + "/managedclusters/c1",
		"a prefix of it":         api + "/managedclusters/c1/proxyx/api",
		"below a tunnel":         api + "/tunnels/c1/proxy/api",
		"another resource":       api + "/clusterservices/c1/proxy/api",
		"another group":          "/apis/other/v1alpha1/managedclusters/c1/proxy",
	} {
		u, err := url.Parse("https://hub" + path)
		require.NoError(t, err, name)
		_, ok := parse(u)
		require.False(t, ok, name)
	}
}
