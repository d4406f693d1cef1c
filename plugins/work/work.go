// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// New returns the command "work".
func New(f *options.Factory) *cobra.Command {
	cmd := options.Group(&cobra.Command{Use: "work", Short: "Send objects to managed clusters"})
	cmd.AddCommand(newApply(f), newDiff(f), newList(f), newTree(f), newTrace(f), newWait(f), newDelete(f))
	return cmd
}

// describeWorks describes works that would be deleted.
func describeWorks(works []work.Info) []string {
	var out []string
	for _, w := range works {
		out = append(out, fmt.Sprintf("work %s on %s: %s", w.Name, w.Cluster, ui.Many(w.Objects.Total, "object")))
	}
	return out
}

// line describes what was done on one cluster.
func line(d fleet.ClusterChange) string {
	return fmt.Sprintf("manifestwork/%s %s on %s", d.Object.GetName(), d.Action, d.Cluster)
}
