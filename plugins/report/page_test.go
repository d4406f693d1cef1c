// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLabelsFitIntoTheirShares: a label is only as long as its share of the bar; the text names
// every state all the same.
func TestLabelsFitIntoTheirShares(t *testing.T) {
	count := tally{what: "cluster"}
	for range 985 {
		count.add("Available", "good")
	}
	for range 12 {
		count.add("Unknown", "unknown")
	}
	for range 3 {
		count.add("Denied", "bad")
	}
	got := count.plot()
	require.Equal(t, "1000 clusters: 3 Denied, 12 Unknown, 985 Available", got.Text)
	require.Equal(t, "1000 clusters", got.Total)
	var labels []string
	width := 0
	for _, p := range got.Parts {
		labels = append(labels, p.Label)
		require.Equal(t, width, p.X)
		width += p.Width
	}
	require.Equal(t, []string{"", "", "985 Available"}, labels)
	require.Equal(t, barLength, width)

	small := tally{what: "cluster"}
	for i := range 10 {
		small.add(map[bool]string{true: "Unknown", false: "Available"}[i == 0], map[bool]string{true: "unknown", false: "good"}[i == 0])
	}
	require.Equal(t, "1", small.plot().Parts[0].Label, "the name does not fit, the count does")
}
