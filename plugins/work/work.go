// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// New returns the command "work".
func New(f *options.Factory) *cobra.Command {
	cmd := options.Group(&cobra.Command{Use: "work", Short: "Send objects to managed clusters"})
	cmd.AddCommand(newApply(f), newDiff(f), newList(f), newTree(f), newTrace(f), newWait(f), newDelete(f))
	return cmd
}

func completions(f *options.Factory) options.Words {
	return options.Words{Clusters: complete.Clusters(f), Sets: complete.Sets(f), Placements: complete.AllPlacements(f)}
}

// line describes what was done on one cluster.
func line(d fleet.ClusterChange) string {
	return fmt.Sprintf("manifestwork/%s %s on %s", d.Object.GetName(), d.Action, d.Cluster)
}
