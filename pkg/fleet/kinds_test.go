// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParseKinds(t *testing.T) {
	got, err := parseKinds([]byte(`{"kind":"APIGroupDiscoveryList","items":[
		{"metadata":{},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"pods","scope":"Namespaced","verbs":["get","list"]},{"resource":"bindings","scope":"Namespaced","verbs":["create"]},
			{"resource":"nodes","scope":"Cluster","verbs":["list"]}]}]},
		{"metadata":{"name":"example.com"},"versions":[
			{"version":"v2","resources":[{"resource":"things","scope":"Namespaced","verbs":["list"]}]},
			{"version":"v1","resources":[{"resource":"things","scope":"Namespaced","verbs":["list"]},{"resource":"olds","scope":"Namespaced","verbs":["list"]}]}]}]}`))
	require.NoError(t, err)
	require.Equal(t, []schema.GroupVersionResource{
		{
			Version:  "v1",
			Resource: "pods",
		}, {
			Group:    "example.com",
			Version:  "v2",
			Resource: "things",
		}, {
			Group:    "example.com",
			Version:  "v1",
			Resource: "olds",
		},
	}, got)
	_, err = parseKinds([]byte(`{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":"Stale"}]}]}`))
	require.ErrorContains(t, err, "example.com does not answer", "there might be anything of it")
	_, err = parseKinds([]byte(`{"kind":"APIGroupList"}`))
	require.Error(t, err)
	_, err = parseKinds([]byte(`no`))
	require.Error(t, err)
}
