// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// A pass that began before a cluster was seen to go must not undo the record of that.
func TestAClusterThatWentIsForgottenByItsOwnPassOnly(t *testing.T) {
	f := farewells{byName: map[string]farewell{}}
	before := f.get("c1")
	f.recordGone("c1", "first")
	f.forget("c1", before.cluster)
	f.update("c1", "first", func(f *farewell) { f.clear = true })
	require.Equal(t, farewell{cluster: "first", gone: true}, f.get("c1"), "a pass that knew no cluster")

	before = f.get("c1")
	f.recordGone("c1", "second")
	f.forget("c1", before.cluster)
	f.recordLeft("c1", before.cluster, map[types.UID]bool{"w": true})
	require.Equal(t, farewell{cluster: "second", gone: true}, f.get("c1"), "a pass for the previous cluster")

	f.recordLeft("c1", "second", map[types.UID]bool{"w": true})
	require.True(t, f.get("c1").left["w"])
	f.forget("c1", "second")
	require.Empty(t, f.byName)
}

func TestAClusterOfWhichNothingWasLeftIsForgottenWhenItGoes(t *testing.T) {
	f := farewells{byName: map[string]farewell{}}
	f.update("c1", "first", func(f *farewell) { f.shown, f.clear = true, true })
	f.recordGone("c1", "first")
	require.Empty(t, f.byName)

	f.update("c1", "first", func(f *farewell) { f.shown, f.clear = true, true })
	f.update("c1", "first", func(f *farewell) { f.clear = false }) // a work was created while others held the cluster
	f.recordGone("c1", "first")
	require.Equal(t, farewell{cluster: "first", gone: true}, f.get("c1"))

	f.update("c2", "first", func(f *farewell) { f.clear = true })
	f.recordGone("c2", "second")
	require.True(t, f.get("c2").gone, "the record of another cluster of that name does not count")
}

func TestWhatAClusterLeftBelongsToTheNextOneOfTheName(t *testing.T) {
	f := farewells{byName: map[string]farewell{}}
	f.recordGone("c1", "first")
	f.recordNew("c1", "second")
	require.Empty(t, f.byName)
	f.update("c1", "second", func(f *farewell) { f.shown = true })
	f.recordNew("c1", "second")
	require.True(t, f.get("c1").shown, "a list with a known cluster changes nothing")
}
