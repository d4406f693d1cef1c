// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// StatusOptions are the flags of hub status.
type StatusOptions struct {
	options.Output
	options.Waiting

	f *options.Factory
}

func newStatus(f *options.Factory) *cobra.Command {
	o := &StatusOptions{f: f}
	cmd := &cobra.Command{
		Use: "status", Aliases: []string{"info"}, Short: "Show the hub at a glance", Args: options.Args(0, 0, "status"),
		Example: options.Example(`
		kubectl ocm hub status --context hub
		kubectl ocm hub status --wait --timeout 2m --context hub`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Format.Check(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Output.AddFlags(cmd.Flags())
	o.Waiting.AddFlags(cmd.Flags(), false, "wait until the hub is healthy")
	return cmd
}

// Run prints the status.
func (o *StatusOptions) Run(ctx context.Context) error {
	u := o.f.UI
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	p := u.Progress()
	s, err := hub.Status(ctx, hub.StatusOptions{Common: fleet.Common{Wait: o.Wait, Timeout: o.Timeout, Clock: u.Streams.Clock, Progress: p.Step}, Hub: c})
	p.Close()
	if err != nil {
		return err
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "HubStatus", s, []string{"clustermanager.operator.open-cluster-management.io/cluster-manager"})
	}
	t := ui.Table{Heads: []string{"COMPONENT", "READY", "VERSION", "RESTARTS", "AGE", "MESSAGE", "IMAGE", "NODE", "CONDITION"}, Wide: 3}
	for _, k := range s.Components {
		t.Rows = append(t.Rows, []string{k.Name, fmt.Sprintf("%d/%d", k.Ready.Good, k.Ready.Total), k.Version, strconv.Itoa(int(k.Restarts)),
			ui.Age(k.Created, u.Streams.Clock.Now()), k.Message, k.Image, ui.Dash(k.Nodes), ui.Dash(k.Condition)})
	}
	if err := u.Report(t, o.Format == ui.Wide); err != nil {
		return err
	}
	n := s.Counts
	u.Say("")
	u.Say("CLUSTERS %d   available %d   unknown %d   pending %d      SETS %d   PLACEMENTS %d (%d unsatisfied)   WORKS %d (%d failed)   ADDONS %d (%d unavailable)",
		n.Clusters,
		n.Available,
		n.Unknown,
		n.Pending,
		n.Sets,
		n.Placements,
		n.Unsatisfied,
		n.Works.Total,
		n.Works.Total-n.Works.Good,
		n.AddOns.Total,
		n.AddOns.Total-n.AddOns.Good)
	for _, problem := range s.Problems {
		u.Say("! %s", problem)
	}
	return nil
}
