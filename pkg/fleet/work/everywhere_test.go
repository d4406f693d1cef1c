// SPDX-License-Identifier: Apache-2.0

package work

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// The most urgent work decides; a cluster that does not report is silent whatever its works say.
func TestTheStateOfAllWorksOfACluster(t *testing.T) {
	works := func(states ...string) []Info {
		var out []Info
		for _, s := range states {
			out = append(out, Info{Name: "w", State: s, Message: "why"})
		}
		return out
	}
	for name, c := range map[string]struct {
		status string
		works  []Info
		want   Place
	}{
		"none":     {cluster.Available, nil, Place{State: PlaceEmpty}},
		"well":     {cluster.Available, works(Ready, Complete), Place{State: PlaceReady, Progress: cluster.Rollout{Total: 2, Done: 2}, Works: cluster.Count{Good: 2, Total: 2}}},
		"pending":  {cluster.Available, works(Ready, Pending), Place{State: PlacePending, Progress: cluster.Rollout{Total: 2, Done: 1, Waiting: 1}, Works: cluster.Count{Good: 1, Total: 2}, Message: "w: Pending: why"}},
		"deleting": {cluster.Available, works(Deleting), Place{State: PlacePending, Progress: cluster.Rollout{Total: 1, Running: 1}, Works: cluster.Count{Total: 1}, Message: "w: Deleting: why"}},
		"failing": {cluster.Available, works(Progressing, ApplyFailed, NotAvailable),
			Place{State: PlaceFailing, Progress: cluster.Rollout{Total: 3, Running: 1, Failed: 2}, Works: cluster.Count{Total: 3}, Message: "w: ApplyFailed: why"}},
		"silent": {cluster.Unknown, works(Degraded, Ready), Place{State: PlaceSilent, Progress: cluster.Rollout{Total: 2, Done: 1, Failed: 1}, Works: cluster.Count{Good: 1, Total: 2}, Message: "late"}},
	} {
		t.Run(name, func(t *testing.T) {
			message := ""
			if c.status == cluster.Unknown {
				message = "late"
			}
			c.want.Cluster = "c"
			require.Equal(t, c.want, placeOf(cluster.Info{Name: "c", Status: c.status, Message: message}, c.works))
		})
	}
}
