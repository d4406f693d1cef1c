// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/scale/metrics"
)

func TestValuesAreAddedByLabels(t *testing.T) {
	s := metrics.Parse(`# HELP requests how many
requests{verb="POST",resource="pods",code="200"} 3
requests{verb="POST",resource="pods",code="409"} 1
requests{verb="GET",resource="a \"quoted\", one"} 1.5e+01 1700000000
other 7
not a sample
requests{verb="GET"} what
`)
	require.Equal(t, map[string]float64{"POST pods": 4, `GET a \"quoted\", one`: 15}, s.Sum("requests", "verb", "resource"))
	require.Equal(t, map[string]float64{"": 7}, s.Sum("other"))
	require.Empty(t, s.Sum("absent"))
}

func TestOnlyGrowthCounts(t *testing.T) {
	require.Equal(t, map[string]float64{"new": 1, "grown": 2}, metrics.Since(
		map[string]float64{"grown": 3, "same": 4, "reset": 9, "gone": 1},
		map[string]float64{"grown": 5, "same": 4, "reset": 1, "new": 1},
	))
}
