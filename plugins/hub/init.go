// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/gate"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// InitOptions are the flags of hub init.
type InitOptions struct {
	options.Change
	options.Release
	// Layout is compact or split; empty keeps it.
	Layout string
	// Gates are feature gates.
	Gates options.Gates
	// AutoAccept are users whose clusters are accepted without an administrator.
	AutoAccept []string
	// APIServerURL is the address of the hub for agents.
	APIServerURL string
	// Replicas is the number of hub processes.
	Replicas int32
	// AddOnRights are the rights of the add-on manager: default or narrow; empty keeps them.
	AddOnRights string
	// Adopt takes the hub over from the operator of another distribution, and Plan shows what
	// that changes.
	Adopt, Plan bool
	// ListImages prints the images and does nothing else.
	ListImages bool
	// Bootstrap prints a join command with a bootstrap token at the end.
	Bootstrap bool

	f *options.Factory
}

func newInit(f *options.Factory) *cobra.Command {
	o := &InitOptions{f: f}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a cluster the hub, or upgrade a hub",
		Long: options.Long(`
		Make the cluster of --context the hub. The preflight checks only read. The command returns
		when the hub answers, and can be repeated after any failure.`),
		Example: options.Example(`
		kubectl ocm hub init --context hub
		kubectl ocm hub init --context hub --dry-run | kubectl apply -f -
		kubectl ocm hub init --context hub --adopt --plan`),
		Args: options.Args(0, 0, "init"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.Change.AddFlags(flags, options.Parts{Diff: true, Wait: true, WaitDefault: true})
	o.Release.AddFlags(flags)
	o.Gates.AddFlags(flags)
	flags.StringVar(&o.Layout, "layout", "", "compact: one process, or split: an operator that runs a Deployment for each part; "+
		"without the flag it stays as it is, at first compact")
	flags.StringSliceVar(&o.AutoAccept, "auto-accept", nil, "user names whose clusters are accepted without an administrator")
	flags.StringVar(&o.APIServerURL, "apiserver-url", "", "address at which other clusters reach this hub, if it differs from the context's")
	flags.Int32Var(&o.Replicas, "replicas", 1, "number of hub processes; one leads, the others are hot standbys")
	flags.StringVar(
		&o.AddOnRights, "addon-rights", "",
		"what the hub may grant to agents of add-ons: default, which their charts expect, or narrow; without the flag it stays as it is",
	)
	flags.BoolVar(&o.Adopt, "adopt", false, "take the hub over from the operator of another distribution; clusters and works notice nothing")
	flags.BoolVar(&o.Plan, "plan", false, "with --adopt: show what happens to each object, and change nothing")
	flags.BoolVar(&o.ListImages, "list-images", false, "print the images that the hub and agents run, and do nothing else")
	flags.BoolVar(&o.Bootstrap, "use-bootstrap-token", false, "create a bootstrap token and print the join command")
	flags.Lookup("use-bootstrap-token").Hidden = true
	options.Hidden(flags, "bundle-version", "version")
	return cmd
}

// Validate checks the flags.
func (o *InitOptions) Validate() error {
	if o.Layout != "" && o.Layout != hub.LayoutCompact && o.Layout != hub.LayoutSplit {
		return options.Usage(fmt.Sprintf("wrong value %q for --layout", o.Layout), "use compact or split")
	}
	if o.AddOnRights != "" && o.AddOnRights != hub.AddOnRightsDefault && o.AddOnRights != hub.AddOnRightsNarrow {
		return options.Usage(fmt.Sprintf("wrong value %q for --addon-rights", o.AddOnRights), "use default or narrow")
	}
	if err := o.checkAdopt(); err != nil {
		return err
	}
	if o.Replicas < 1 {
		return options.Usage(fmt.Sprintf("a hub cannot have %d replicas", o.Replicas), "for example --replicas 2; kubectl ocm hub clean removes the hub")
	}
	if err := o.Release.Check(); err != nil {
		return err
	}
	if err := gate.Check(o.Gates, gate.Hub); err != nil {
		return err
	}
	return o.Change.Check(o.f.UI)
}

// checkAdopt checks what the flags say about an adoption.
func (o *InitOptions) checkAdopt() error {
	switch {
	case o.Plan && !o.Adopt:
		return options.Usage("--plan needs --adopt", "use --dry-run or --diff to see what init would change")
	case o.Adopt && o.Diff:
		return options.Usage("--adopt cannot be combined with --diff", "use --plan: it shows what happens to each object")
	case o.Adopt && len(o.Gates)+len(o.AutoAccept) > 0:
		return options.Usage("--adopt keeps the settings of the hub", "leave --feature-gates and --auto-accept out, and run hub init again afterwards")
	case o.Adopt && o.Layout == hub.LayoutSplit:
		return options.Usage("--adopt ends in the compact layout", "leave --layout out, and run hub init --layout split afterwards")
	}
	return nil
}

// Run installs or updates the hub and prints the result.
func (o *InitOptions) Run(ctx context.Context) error {
	u := o.f.UI
	hubImage, agentImage := o.Images(version.Get())
	if o.ListImages {
		images := []string{hubImage, agentImage}
		if o.Format.Machine() {
			return u.Result(o.Format, "ImageList", images, images)
		}
		u.Say("%s\n%s", hubImage, agentImage)
		return nil
	}
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	u.Note("hub: %s", c)
	p := u.Progress()
	wanted := hub.InitOptions{Common: o.Common(u, p.Step), Hub: c, Image: hubImage, Version: o.VersionOr(version.Get()),
		FeatureGates: o.Gates, AutoAccept: o.AutoAccept, APIServerURL: o.APIServerURL, Replicas: o.Replicas, AddOnRights: o.AddOnRights, Layout: o.Layout}
	if o.Adopt {
		defer p.Close()
		return o.adopt(ctx, p.Close, wanted)
	}
	result, err := hub.Init(ctx, wanted)
	p.Close()
	if err != nil {
		return o.Diffed(err)
	}
	if done, err := o.Preview(u, "InitResult", result, result.Items); done || err != nil {
		return err
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "InitResult", result, fleet.Names(result.Items))
	}
	o.print(u, c, result)
	if err := o.Objects(u, result.Items); err != nil || !o.Bootstrap {
		return err
	}
	return (&TokenOptions{TTL: token.DefaultTTL, Bootstrap: true, Change: options.Change{DryRun: "none", Timeout: o.Timeout}, f: o.f}).Run(ctx)
}

func (o *InitOptions) print(u *ui.UI, c *fleet.Cluster, result hub.InitResult) {
	state := "ready"
	if !result.Ready {
		state = "installed"
	}
	u.Say("hub/ocm-hub %s on %s, version %s (%s)", state, c, result.Version, result.Action)
	name := result.Context
	if name == "" {
		name = "<hub>"
	}
	u.Say("join a cluster:  %s", u.Own(fmt.Sprintf("kubectl ocm join <name> --context <its context> --hub-context %s --accept", name)))
}
