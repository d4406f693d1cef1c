// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// CleanOptions are the flags of hub clean.
type CleanOptions struct {
	options.Change
	// Force removes a hub with clusters.
	Force bool

	f *options.Factory
}

func newClean(f *options.Factory) *cobra.Command {
	o := &CleanOptions{f: f}
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove the hub from a cluster",
		Long: options.Long(`
		Remove everything that hub init and the hub itself have put on the cluster of --context,
		and show that nothing is left. It is refused while clusters are attached.`),
		Args: options.Args(0, 0, "clean"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(o.f.UI); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags(), options.Parts{Yes: true})
	cmd.Flags().BoolVar(&o.Force, "force", false, "also with clusters attached; what their works deployed stays on them")
	return cmd
}

// Run removes the hub.
func (o *CleanOptions) Run(ctx context.Context) error {
	u := o.f.UI
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	u.Note("hub: %s", c)
	p := u.Progress()
	result, err := fleet.Clean(ctx, fleet.CleanOptions{Common: o.Common(u, p.Step), Hub: c, Force: o.Force, Confirm: func(plan fleet.CleanPlan) error {
		targets := []string{"hub: " + plan.Hub}
		if len(plan.Clusters) > 0 {
			targets = append(targets, fmt.Sprintf("clusters: %s, with %d works", strings.Join(plan.Clusters, ", "), plan.Works))
		}
		return u.Confirm(o.Yes, "Remove the hub?", targets)
	}})
	p.Close()
	if err != nil {
		return err
	}
	if done, err := o.Preview(u, "CleanResult", result, result.Items); done || err != nil {
		return err
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "CleanResult", result, fleet.Names(result.Items))
	}
	if result.Action == fleet.Unchanged {
		u.Say("hub unchanged: there is none on %s", c)
		return nil
	}
	u.Say("hub deleted from %s", c)
	return o.Objects(u, result.Items)
}
