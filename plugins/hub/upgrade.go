// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/adopt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// UpgradeOptions are the flags of hub upgrade.
type UpgradeOptions struct {
	options.Change
	options.Release
	// Plan shows what would change.
	Plan bool
	// BackOut gives an adopted hub back to the operator that ran it before.
	BackOut bool

	f *options.Factory
}

func newUpgrade(f *options.Factory) *cobra.Command {
	o := &UpgradeOptions{f: f}
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Move the hub to another release, or give an adopted hub back",
		Long: options.Long(`
		Run another release on the hub of --context and wait until it is ready. A hub never goes back
		to an older release, because that may not know what a newer one has stored.

		With --back-out, a hub that "kubectl ocm hub init --adopt" took over goes back to the operator
		that ran it before. Clusters, works and add-ons stay either way.`),
		Example: options.Example(`
		kubectl ocm hub upgrade --context hub --plan
		kubectl ocm hub upgrade --context hub --version v0.2.0
		kubectl ocm hub upgrade --context hub --back-out --plan`),
		Args: options.Args(0, 0, "upgrade"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.Change.AddFlags(flags, options.Parts{Wait: true, WaitDefault: true})
	o.Release.AddFlags(flags)
	flags.BoolVar(&o.Plan, "plan", false, "show what happens to each object, and change nothing")
	flags.BoolVar(&o.BackOut, "back-out", false, "give an adopted hub back to the operator that ran it before")
	return cmd
}

// Validate checks the flags.
func (o *UpgradeOptions) Validate() error {
	if o.BackOut && o.Version+o.Registry+o.Image != "" {
		return options.Usage("--back-out restores what was recorded", "leave --version, --image-registry and --image out")
	}
	return cmp.Or(o.Release.Check(), o.Change.Check(o.f.UI))
}

// Run upgrades the hub, or gives it back, and prints the result.
func (o *UpgradeOptions) Run(ctx context.Context) error {
	u := o.f.UI
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	u.Note("hub: %s", c)
	p := u.Progress()
	defer p.Close()
	common := o.Common(u, p.Step)
	if o.Plan && !common.Reads() {
		common.DryRun = fleet.DryRunClient
	}
	if o.BackOut {
		result, err := adopt.Back(ctx, adopt.BackOptions{Common: common, Hub: c})
		p.Close()
		return o.printBack(c, common.Reads(), result, err)
	}
	wanted := hub.InitOptions{Common: common, Hub: c, Version: o.VersionOr(version.Get())}
	if o.Registry+o.Image != "" {
		wanted.Image, _ = o.Images(version.Get())
	}
	result, err := hub.Upgrade(ctx, wanted)
	p.Close()
	if err != nil {
		return err
	}
	if !common.Reads() && o.Format.Machine() {
		return u.Result(o.Format, "UpgradeResult", result, fleet.Names(result.Items))
	}
	state := "upgraded"
	if common.Reads() {
		state = "would be upgraded"
		if err := o.Output.Plan(u, "UpgradePlan", result, fleet.PlannedOf(result.Items)); err != nil || o.Format.Machine() {
			return err
		}
	}
	u.Say("hub/ocm-hub %s on %s from %s to %s (%s)", state, c, result.From, result.Version, result.Action)
	return o.Objects(u, result.Items)
}

func (o *UpgradeOptions) printBack(c *fleet.Cluster, plan bool, result adopt.Result, err error) error {
	u := o.f.UI
	switch {
	case err != nil:
		return err
	case plan:
		return o.Output.Plan(u, "BackOutPlan", result, result.Items)
	case o.Format.Machine():
		return u.Result(o.Format, "BackOutResult", result, fleet.PlannedNames(result.Items))
	case result.To == "":
		u.Say("the hub on %s is as it was; install its operator again with the tool that removed it", c)
	default:
		u.Say("the hub on %s is run by %s again", c, result.To)
	}
	return nil
}
