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
	in := func(resource schema.GroupVersionResource, namespaces int) tables {
		ts := tables{}
		for i := range namespaces {
			for _, name := range []string{"a", "b"} {
				_, first := ts.hold(resource, reconcile.Key{Namespace: fmt.Sprint("n", i), Name: name}, &holder{work: "w"})
				require.True(t, first)
			}
		}
		return ts
	}
	require.Empty(t, tables{}.scopes(nil))
	require.Len(t, in(maps, 8).scopes(nil), 8)
	require.Equal(t, map[scope]bool{{resource: maps}: true}, in(maps, 9).scopes(nil))
	require.Len(t,
		in(maps, 9).scopes(map[schema.GroupVersionResource]bool{maps: true}), 9,
		"where the cluster may not be watched, its namespaces may")
	cluster := tables{}
	cluster.hold(spaces, reconcile.Key{Name: "a"}, &holder{})
	cluster.hold(spaces, reconcile.Key{Name: "b"}, &holder{})
	require.Equal(t,
		map[scope]bool{{resource: spaces}: true}, cluster.scopes(map[schema.GroupVersionResource]bool{spaces: true}))
}

func TestObjectsAreHeldUntilTheirLastWorkLetsGo(t *testing.T) {
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	key := reconcile.Key{Namespace: "n", Name: "a"}
	ts := tables{}
	works := []*holder{{work: "1"}, {work: "2"}, {work: "3"}}
	var o object
	for i, w := range works {
		var first bool
		o, first = ts.hold(maps, key, w)
		require.Equal(t, i == 0, first)
	}
	ts.hold(maps, key, works[1])
	require.Equal(t, works, ts.works(maps, key))
	require.Equal(t, map[string]bool{"1": true, "2": true, "3": true}, ts.worksIn(scope{resource: maps}))
	ts.release(o, works[0])
	ts.release(o, works[0])
	require.Equal(t, works[1:], ts.works(maps, key))
	ts.hold(maps, reconcile.Key{Namespace: "n", Name: "b"}, works[0])
	require.Equal(t, map[string]bool{"1": true, "2": true, "3": true}, ts.worksIn(scope{maps, "n"}))
	require.Empty(t, ts.worksIn(scope{maps, "other"}))
	ts.release(o, works[1])
	ts.release(o, works[2])
	ts.release(o, works[2])
	require.Empty(t, ts.works(maps, key))
	require.Equal(t, map[scope]bool{{maps, "n"}: true}, ts.scopes(nil), "the other object is still there")
	ts.release(object{o.in, "b"}, works[0])
	require.Empty(t, ts)
}
