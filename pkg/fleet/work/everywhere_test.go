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
	place := func(state string, progress cluster.Rollout, message string) Place {
		return Place{State: state, Works: cluster.Count{Good: progress.Done, Total: progress.Total}, Progress: progress, Message: message}
	}
	for name, c := range map[string]struct {
		status string
		works  []Info
		want   Place
	}{
		"none": {cluster.Available, nil, place(PlaceEmpty, cluster.Rollout{}, "")},
		"well": {cluster.Available, works(Ready, Complete), place(PlaceReady, cluster.Rollout{Total: 2, Done: 2}, "")},
		"pending": {cluster.Available, works(Ready, Pending),
			place(PlacePending, cluster.Rollout{Total: 2, Done: 1, Waiting: 1}, "w: Pending: why")},
		"deleting": {cluster.Available, works(Deleting), place(PlacePending, cluster.Rollout{Total: 1, Running: 1}, "w: Deleting: why")},
		"failing": {cluster.Available, works(Progressing, ApplyFailed, NotAvailable),
			place(PlaceFailing, cluster.Rollout{Total: 3, Running: 1, Failed: 2}, "w: ApplyFailed: why")},
		"silent": {cluster.Unknown, works(Degraded, Ready), place(PlaceSilent, cluster.Rollout{Total: 2, Done: 1, Failed: 1}, "late")},
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
