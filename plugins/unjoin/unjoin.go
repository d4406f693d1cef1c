// SPDX-License-Identifier: Apache-2.0

package unjoin

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/unjoin"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Options are the flags of unjoin.
type Options struct {
	options.Change
	// Wanted says which cluster to unjoin, and how.
	Wanted unjoin.Options
	// Alias is the name given with --cluster-name.
	Alias string
	// HubContext is the context of the hub.
	HubContext string
	// Klusterlet declares the agent that leaves.
	Klusterlet string
	// HubOnly removes the cluster from the hub only.
	HubOnly bool

	f *options.Factory
}

// New returns the command "unjoin".
func New(f *options.Factory) *cobra.Command {
	o := &Options{f: f}
	cmd := &cobra.Command{
		Use: "unjoin NAME", Short: "Detach a cluster from its hub", Args: options.Args(0, 1, "the name of the cluster"),
		Long: options.Long(`
		Remove the agent from the cluster of --context and, with --hub-context, the cluster from
		the hub once its works have been removed. Without --hub-context the command is refused
		while works are applied. With --keep-works the agent first confirms that it keeps what
		works have applied.`),
		Example: options.Example(`
		kubectl ocm unjoin cluster1 --context spoke --hub-context hub
		kubectl ocm unjoin cluster1 --hub-context hub --hub-only --force      # the cluster is gone`),
		ValidArgsFunction: complete.Clusters(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.AddFlags(flags, options.Parts{Yes: true})
	flags.StringVar(&o.HubContext, "hub-context", "", "context of the hub, to remove the cluster there too")
	flags.StringVar(&o.Wanted.Klusterlet, "klusterlet", "", "klusterlet that declares the agent; needed where the cluster has the name on several hubs")
	flags.BoolVar(&o.HubOnly, "hub-only", false, "remove it from the hub only, for a cluster that no longer exists; needs --force")
	flags.BoolVar(&o.Wanted.KeepWorks, "keep-works", false, "leave the objects of works on the cluster")
	flags.BoolVar(&o.Wanted.Force, "force", false, "continue if the agent does not answer, and remove the cluster's namespace on the hub if it is empty")
	flags.StringVar(&o.Alias, "cluster-name", "", "the name of the cluster")
	flags.Lookup("cluster-name").Hidden = true
	_ = cmd.RegisterFlagCompletionFunc("hub-context", complete.Contexts(f))
	return cmd
}

// Complete takes the name from the arguments or from --cluster-name.
func (o *Options) Complete(args []string) error {
	if len(args) == 1 {
		o.Wanted.Name = args[0]
	}
	name := cmp.Or(o.Wanted.Name, o.Alias)
	switch {
	case o.Alias != "" && o.Alias != name:
		return options.Usage(fmt.Sprintf("two names are given: %q and %q", o.Wanted.Name, o.Alias), "leave --cluster-name out")
	case name == "":
		return options.Usage("the name of the cluster is missing", "kubectl ocm unjoin NAME --context <its context>")
	}
	o.Wanted.Name = name
	return nil
}

// Validate checks the flags.
func (o *Options) Validate() error {
	if o.HubOnly && o.HubContext == "" {
		return options.Usage("--hub-only needs --hub-context", "name the context of the hub")
	}
	return o.Check(o.f.UI)
}

// Run removes the cluster and prints what was done.
func (o *Options) Run(ctx context.Context) error {
	u := o.f.UI
	wanted := o.Wanted
	wanted.Confirm = o.confirm
	var err error
	if !o.HubOnly {
		if wanted.Spoke, err = o.f.Cluster(""); err != nil {
			return err
		}
		u.Note("cluster: %s", wanted.Spoke)
	}
	if o.HubContext != "" {
		if wanted.Hub, err = o.f.Cluster(o.HubContext); err != nil {
			return err
		}
		u.Note("hub: %s", wanted.Hub)
	}
	p := u.Progress()
	wanted.Common = o.Common(u, p.Step)
	result, err := unjoin.Run(ctx, wanted)
	p.Close()
	if err != nil {
		if result.InTheWay && !o.Format.Machine() {
			err = errors.Join(u.Report(appliedTable(result), o.Format == ui.Wide), err)
		}
		return err
	}
	return o.print(u, wanted, result)
}

func (o *Options) print(u *ui.UI, wanted unjoin.Options, result unjoin.Result) error {
	if done, err := o.Printed(u, "UnjoinResult", result, result.Items); done || err != nil {
		return err
	}
	if result.Action == fleet.Unchanged {
		u.Say("%s unchanged: it is not joined", result.Cluster)
		return nil
	}
	u.Say("%s unjoined%s", result.Cluster, options.Staying(result.Stays))
	if wanted.Hub == nil {
		u.Next(fmt.Sprintf("kubectl ocm unjoin %s --hub-only --hub-context <hub> --force      removes it from the hub", result.Cluster))
	}
	return nil
}

// confirm shows what would be removed, and asks.
func (o *Options) confirm(plan unjoin.Plan) error {
	var targets []string
	if plan.Spoke != "" {
		targets = append(targets, "agent: "+plan.Spoke)
	}
	if plan.Hub != "" {
		targets = append(targets, options.LeavingCluster(o.Wanted.Name, plan))
	}
	for _, w := range plan.Applied {
		fate := "removed"
		switch {
		case o.Wanted.KeepWorks || plan.Hub == "":
			fate = "left in place"
		case plan.Stopped != "" && o.Wanted.Force:
			fate = "left in place: " + plan.Stopped
		}
		targets = append(targets, fmt.Sprintf("work %s: %s, %s", w.Work, ui.Many(w.Objects, "object"), fate))
	}
	return o.f.UI.Confirm(o.Yes, "Unjoin "+o.Wanted.Name+"?", targets)
}

// appliedTable lists the works that block the unjoin.
func appliedTable(result unjoin.Result) ui.Table {
	t := ui.Table{Heads: []string{"WORK", "OBJECTS", "FINALIZER"}}
	for _, w := range result.Applied {
		finalizer := "-"
		if len(w.Finalizers) > 0 {
			finalizer = w.Finalizers[0]
		}
		t.Rows = append(t.Rows, []string{w.Work, fmt.Sprint(w.Objects), finalizer})
	}
	return t
}
