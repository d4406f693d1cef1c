// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/service"
)

func TestPathsHaveOneMeaning(t *testing.T) {
	const api = "/apis/connect.open-cluster-management.io/v1alpha1"
	web := &service.Target{Namespace: "apps", Name: "web", Scheme: "https", Port: 443}
	for path, want := range map[string]target{
		api + "/managedclusters/c1/proxy":                      {cluster: "c1", path: "/"},
		api + "/managedclusters/c1/proxy/":                     {cluster: "c1", path: "/"},
		api + "/managedclusters/c1/proxy/api/v1/pods":          {cluster: "c1", path: "/api/v1/pods"},
		api + "/managedclusters/c1/proxy/api/v1/s/x/proxy/a/":  {cluster: "c1", path: "/api/v1/s/x/proxy/a/"},
		api + "/managedclusters/c1/proxy/managedclusters/c2":   {cluster: "c1", path: "/managedclusters/c2"},
		api + "/managedclusters/c1/proxy/a...b/..c":            {cluster: "c1", path: "/a...b/..c"},
		api + "/clusterservices/c1/proxy/apps/web:443":         {cluster: "c1", path: "/", service: web},
		api + "/clusterservices/c1/proxy/apps/web:443/":        {cluster: "c1", path: "/", service: web},
		api + "/clusterservices/c1/proxy/apps/https:web:443/a": {cluster: "c1", path: "/a", service: web},
		api + "/clusterservices/c1/proxy/apps/web:443/c2/b:1/": {cluster: "c1", path: "/c2/b:1/", service: web},
		api + "/tunnels/c1/proxy":                              {cluster: "c1", path: "/", tunnel: true},
		api + "/managedclusters/c1/proxy/api/v1/with%20blanks": {cluster: "c1", path: "/api/v1/with blanks"},

		api + "/namespaces/c1/managedserviceaccounts/a.b/proxy":             {cluster: "c1", account: "a.b", path: "/"},
		api + "/namespaces/c1/managedserviceaccounts/a/proxy/api/v1/pods":   {cluster: "c1", account: "a", path: "/api/v1/pods"},
		api + "/namespaces/c1/managedserviceaccounts/a/proxy/namespaces/c2": {cluster: "c1", account: "a", path: "/namespaces/c2"},
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
		"another resource":       api + "/services/c1/proxy/api",
		"no Service":             api + "/clusterservices/c1/proxy",
		"no Service either":      api + "/clusterservices/c1/proxy/",
		"a namespace only":       api + "/clusterservices/c1/proxy/apps",
		"no port":                api + "/clusterservices/c1/proxy/apps/web/metrics",
		"a port by its name":     api + "/clusterservices/c1/proxy/apps/web:http/metrics",
		"another protocol":       api + "/clusterservices/c1/proxy/apps/tcp:web:80/metrics",
		"a Service's parent":     api + "/clusterservices/c1/proxy/apps/web:80/../db:80",
		"its parent, encoded":    api + "/clusterservices/c1/proxy/apps/web:80/%2e%2e/db:80",
		"an encoded colon":       api + "/clusterservices/c1/proxy/apps/web%3A80/a",
		"an encoded slash there": api + "/clusterservices/c1/proxy/apps/web:80/a%2Fb",
		"no namespace":           api + "/clusterservices/c1/proxy//web:80",
		"a path of an API":       api + "/clusterservices/c1/proxy/api/v1/namespaces",
		"no account":             api + "/namespaces/c1/managedserviceaccounts//proxy/api",
		"no name of an account":  api + "/namespaces/c1/managedserviceaccounts/proxy",
		"a parent as account":    api + "/namespaces/c1/managedserviceaccounts/../proxy/api",
		"an account by a path":   api + "/namespaces/c1/managedserviceaccounts/a%2F..%2Fb/proxy/api",
		"a user as account":      api + "/namespaces/c1/managedserviceaccounts/system:serviceaccount:a:b/proxy/api",
		"to another account":     api + "/namespaces/c1/managedserviceaccounts/a/proxy/../../b/proxy/api",
		"to another namespace":   api + "/namespaces/c1/../c2/managedserviceaccounts/a/proxy/api",
		"no namespace of it":     api + "/managedserviceaccounts/a/proxy/api",
		"a namespace without it": api + "/namespaces/c1/proxy/api",
		"a cluster in one":       api + "/namespaces/c1/managedclusters/c2/proxy/api",
		"a tunnel in one":        api + "/namespaces/c1/tunnels/c2/proxy",
		"an account's status":    api + "/namespaces/c1/managedserviceaccounts/a/status",
		"dots in a namespace":    api + "/namespaces/c.1/managedserviceaccounts/a/proxy/api",
		"another group":          "/apis/other/v1alpha1/managedclusters/c1/proxy",
	} {
		u, err := url.Parse("https://hub" + path)
		require.NoError(t, err, name)
		_, ok := parse(u)
		require.False(t, ok, name)
	}
}
