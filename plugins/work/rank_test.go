// SPDX-License-Identifier: Apache-2.0

package work

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

func TestRankSet(t *testing.T) {
	for name, tc := range map[string]struct {
		set  work.SetInfo
		want options.Rank
	}{
		"all updated and available": {work.SetInfo{Clusters: 3, Applied: 3, Available: 3, Updated: 3}, options.Well},
		"one is degraded":           {work.SetInfo{Clusters: 3, Applied: 3, Available: 3, Updated: 3, Degraded: 1}, options.Failing},
		"one is not available":      {work.SetInfo{Clusters: 3, Applied: 3, Available: 2, Updated: 3}, options.Pending},
		"one is not updated":        {work.SetInfo{Clusters: 3, Applied: 3, Available: 3, Updated: 2}, options.Pending},
		"its placement is missing":  {work.SetInfo{Message: "placement web is not found"}, options.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rankSet(tc.set); got != tc.want {
				t.Errorf("rank %v, want %v", got, tc.want)
			}
		})
	}
}
