// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/lab"
)

// StatusOptions are the flags of dev status.
type StatusOptions struct {
	options.Output
	// Name of the playground; empty means all.
	Name string

	f *options.Factory
}

func newStatus(f *options.Factory) *cobra.Command {
	o := &StatusOptions{f: f}
	cmd := &cobra.Command{
		Use: "status", Short: "Show the clusters that dev up started", Args: options.Args(0, 0, "status"),
		Long: options.Long(`
		Show the clusters of all playgrounds of this user: process and port of kube-apiserver,
		whether everything works, and the memory of all processes of the cluster.`),
		Example: options.Example("kubectl ocm dev status"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Format.Check(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	nameFlag(cmd, &o.Name, "", "only the playground of this name")
	return cmd
}

// Run prints a line for each cluster.
func (o *StatusOptions) Run(ctx context.Context) error {
	root, err := folder()
	if err != nil {
		return err
	}
	names, err := lab.Names(root)
	if err != nil {
		return err
	}
	states := []lab.State{}
	for _, name := range names {
		some, err := lab.Status(ctx, root, name)
		if errors.Is(err, lab.ErrNone) || o.Name != "" && o.Name != name {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the playground %s: %w", name, err)
		}
		states = append(states, some...)
	}
	return o.print(states)
}

func (o *StatusOptions) print(states []lab.State) error {
	t := ui.Table{Heads: []string{"CLUSTER", "CONTEXT", "PID", "PORT", "READY", "RSS", "REASON"}}
	var names []string
	sound := true
	for _, s := range states {
		ready := "yes"
		if !s.Ready {
			ready, sound = "no", false
		}
		names = append(names, s.Context)
		t.Rows = append(t.Rows, []string{s.Cluster, s.Context, number(s.PID), number(s.Port), ready, fmt.Sprintf("%dMi", s.Resident>>20), s.Reason})
	}
	if o.Format.Machine() {
		return o.f.UI.Result(o.Format, "PlaygroundList", states, names)
	}
	if len(states) == 0 {
		o.f.UI.Note("no playground; start one with: %s", o.f.UI.Own("kubectl ocm dev up"))
		return nil
	}
	if t.Wide = 0; sound {
		t.Wide = 1 // there is no reason to show
		t = t.Narrow()
	}
	return o.f.UI.Report(t, o.Format == ui.Wide)
}

// number prints a number that is 0 for none.
func number(n int) string {
	if n == 0 {
		return ui.Dash("")
	}
	return strconv.Itoa(n)
}
