// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestScopesAreAsFewAsNeeded(t *testing.T) {
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	spaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	in := func(resource schema.GroupVersionResource, namespaces int) map[object]map[string]bool {
		out := map[object]map[string]bool{}
		for i := range namespaces {
			for _, name := range []string{"a", "b"} {
				out[object{resource, reconcile.Key{Namespace: fmt.Sprint("n", i), Name: name}}] = nil
			}
		}
		return out
	}
	require.Empty(t, scopes(nil, nil))
	require.Len(t, scopes(in(maps, 8), nil), 8)
	require.Equal(t, map[scope]bool{{resource: maps}: true}, scopes(in(maps, 9), nil))
	require.Len(t, scopes(in(maps, 9), map[schema.GroupVersionResource]bool{maps: true}), 9, "where the cluster may not be watched, its namespaces may")
	cluster := map[object]map[string]bool{{spaces, reconcile.Key{Name: "a"}}: nil, {spaces, reconcile.Key{Name: "b"}}: nil}
	require.Equal(t, map[scope]bool{{resource: spaces}: true}, scopes(cluster, map[schema.GroupVersionResource]bool{spaces: true}))
}
