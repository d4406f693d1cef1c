// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// TestNothingIsDecidedBeforeAllIsRead starts the loop while one of the kinds that decisions are made
// of cannot be read: the decisions that exist stay, whichever it is.
func TestNothingIsDecidedBeforeAllIsRead(t *testing.T) {
	t.Parallel()
	s, config := served(t, "apps", "k2")
	f := &field{scene: s, namespace: "apps", set: "apps"}
	f.bind(t, "apps")
	for _, name := range []string{"k0", "k1", "k2"} {
		require.NoError(t, f.add(name, nil))
	}
	f.score(t, "k2", 100, "null")
	const prioritized = `{"numberOfClusters":2,"prioritizerPolicy":{"mode":"Exact","configurations":[
		{"scoreCoordinate":{"type":"AddOn","addOn":{"resourceName":"usage","scoreName":"cpu"}}}]}}`
	f.place(t, "p", prioritized)
	decided := func(name string) func() bool {
		return func() bool { return slices.Equal([]string{"0: k0 k2"}, f.groups(t, name)) && f.satisfied(t, name, 2) }
	}
	placementLoop.run(t, config, nil, decided("p"))
	u := f.follow(t)
	u.requireSelected(t, "k0", "k2")

	kinds := []string{"managedclusters", "managedclustersets", "managedclustersetbindings", "addonplacementscores", "placements", "placementdecisions"}
	for _, held := range kinds {
		var asked atomic.Int64
		counted, process := faults.Count(config)
		process.Fail(func(_ string, r *http.Request) error {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/"+held) || asked.Add(1) > 2 {
				return nil
			}
			return faults.ErrCut
		})
		// Whatever the loop has to do about p is done before it decides on a placement that came later.
		later := sync.OnceFunc(func() { f.place(t, held, prioritized) })
		placementLoop.run(t, counted, nil, func() bool {
			if asked.Load() <= 2 {
				return false
			}
			later()
			return decided(held)()
		})
		for _, w := range process.Seen() {
			require.NotRegexp(t, "^DELETE|/placements/p/|/p-decision-", w, "%s were read last", held)
		}
	}
	require.True(t, decided("p")())
	require.Empty(t, u.lost())
}
