// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// A pass that began before a cluster was seen to go must not undo that.
func TestAClusterThatWentIsForgottenByItsOwnPassOnly(t *testing.T) {
	var f farewells
	before := f.of("c1")
	f.went("c1", "first")
	f.forget("c1", before.cluster)
	f.note("c1", "first", func(f *farewell) { f.clear = true })
	require.Equal(t, farewell{cluster: "first", gone: true}, f.of("c1"), "a pass that knew of none")

	before = f.of("c1")
	f.went("c1", "second")
	f.forget("c1", before.cluster)
	f.leave("c1", before.cluster, map[types.UID]bool{"w": true})
	require.Equal(t, farewell{cluster: "second", gone: true}, f.of("c1"), "a pass for the one before")

	f.leave("c1", "second", map[types.UID]bool{"w": true})
	require.True(t, f.of("c1").left["w"])
	f.forget("c1", "second")
	require.Empty(t, f.byName)
}

func TestAClusterOfWhichNothingWasLeftIsForgottenWhenItGoes(t *testing.T) {
	var f farewells
	f.note("c1", "first", func(f *farewell) { f.shown, f.clear = true, true })
	f.went("c1", "first")
	require.Empty(t, f.byName)

	f.note("c1", "first", func(f *farewell) { f.shown, f.clear = true, true })
	f.note("c1", "first", func(f *farewell) { f.clear = false }) // a work came while others held it
	f.went("c1", "first")
	require.Equal(t, farewell{cluster: "first", gone: true}, f.of("c1"))

	f.note("c2", "first", func(f *farewell) { f.clear = true })
	f.went("c2", "second")
	require.True(t, f.of("c2").gone, "what was said of another cluster of the name does not count")
}

func TestWhatAClusterLeftBelongsToTheNextOneOfTheName(t *testing.T) {
	var f farewells
	f.went("c1", "first")
	f.came("c1", "second")
	require.Empty(t, f.byName)
	f.note("c1", "second", func(f *farewell) { f.shown = true })
	f.came("c1", "second")
	require.True(t, f.of("c1").shown, "a list that tells again of one that is known changes nothing")
}
