// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// TestADifferenceIsWhatWasAskedFor checks that defaults of the API server are on both
// sides of a difference, or on none.
func TestADifferenceIsWhatWasAskedFor(t *testing.T) {
	hub := harness.Shared(t, "hub")
	kubeconfig(t, hub)
	asHub(t, hub)
	words := []string{"placement", "create", "differs", "--toleration", "gone:NoSelect", "--context", "hub"}
	require.Zero(t, run(t, append(words, "--count", "1")...).code)
	got := run(t, append(words, "--count", "2", "--diff")...)
	require.Equal(t, 1, got.code)
	var changed []string
	for line := range strings.Lines(got.out) {
		if strings.HasPrefix(line, "+ ") || strings.HasPrefix(line, "- ") {
			changed = append(changed, strings.Join(strings.Fields(line), " "))
		}
	}
	require.Equal(t, []string{"- numberOfClusters: 1", "+ numberOfClusters: 2"}, changed)
	require.Zero(t, run(t, append(words, "--count", "1", "--diff")...).code)
}
