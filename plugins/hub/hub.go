// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// New returns the command "hub".
func New(f *options.Factory) *cobra.Command {
	cmd := options.Group(&cobra.Command{
		Use:   "hub",
		Short: "Install, upgrade, inspect, back up and remove the hub",
	})
	cmd.AddCommand(newInit(f), newUpgrade(f), newStatus(f), newToken(f), newBackup(f), newRestore(f), newClean(f))
	return cmd
}
