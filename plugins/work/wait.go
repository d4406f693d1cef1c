// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// WaitOptions are the flags of work wait.
type WaitOptions struct {
	options.Output
	options.Targets
	// Timeout bounds the wait.
	Timeout time.Duration
	// Name of the work.
	Name string
	// For is the state to wait for.
	For string

	f *options.Factory
}

func newWait(f *options.Factory) *cobra.Command {
	o := &WaitOptions{f: f}
	cmd := &cobra.Command{
		Use: "wait NAME", Short: "Wait until a work is applied, available, complete or gone", Args: options.Args(1, 1, "the name of the work"),
		Long: options.Long(`
		Wait until the current spec of a work has reached a state on all clusters that have the
		work, or on the given ones. Works of a replica set of that name count too. On a timeout
		the command reports what it is waiting for.`),
		Example: options.Example(`
		kubectl ocm work wait web --for available --timeout 2m
		kubectl ocm work wait migration --for complete -c cluster1`),
		ValidArgsFunction: complete.Works(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return f.Do(cmd, func() error { return errors.Join(o.Targets.Check(false), o.Format.Check()) }, o.Run)
		},
	}
	flags := cmd.Flags()
	o.Output.AddFlags(flags)
	o.Targets.AddFlags(cmd, complete.Targets(f))
	options.DurationVar(flags, &o.Timeout, "timeout", 5*time.Minute, "how long to wait, for example 90s or 5m")
	flags.StringVar(&o.For, "for", "available", "the state to wait for: "+strings.Join(work.WaitStates(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(work.WaitStates(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Run waits for the state and prints the result for each cluster.
func (o *WaitOptions) Run(ctx context.Context, c *fleet.Cluster) error {
	u := o.f.UI
	p := u.Progress()
	result, failure := work.Wait(ctx, work.Options{Common: fleet.Common{Timeout: o.Timeout, Clock: u.Streams.Clock, Progress: p.Step}, Hub: c, Name: o.Name,
		Targets: o.Targets.Targets}, o.For)
	p.Close()
	switch {
	case failure != nil && len(result.Clusters) == 0:
		return failure
	case o.Format.Machine():
		return cmp.Or(u.Result(o.Format, "WorkResult", result, fleet.Names(result.Items)), failure)
	}
	t := ui.Table{Heads: []string{"CLUSTER", "RESULT", "MESSAGE"}}
	for _, d := range result.Clusters {
		row := []string{d.Cluster, o.For, "-"}
		if d.Failure != "" {
			row = []string{d.Cluster, "waiting", d.Failure}
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) > 0 && (failure == nil || len(t.Rows) > 1) {
		return cmp.Or(u.Report(t, o.Format == ui.Wide), failure)
	}
	return failure
}
