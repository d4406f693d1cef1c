// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/lab"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// DownOptions are the flags of dev down.
type DownOptions struct {
	options.Change
	// Name of the playground, if not All.
	Name string
	// All removes every playground.
	All bool

	f *options.Factory
}

// removed is what was done with one playground.
type removed struct {
	Object string       `json:"object"`
	Action fleet.Action `json:"action"`
}

func newDown(f *options.Factory) *cobra.Command {
	o := &DownOptions{f: f}
	cmd := &cobra.Command{
		Use: "down", Short: "End what dev up started, and remove it", Args: options.Args(0, 0, "down"),
		Long: options.Long(`
		End the processes of a playground, and remove its contexts and its folder. Only processes
		that dev up recorded are ended, and never another one that got the number of one of them.`),
		Example: options.Example(`
		kubectl ocm dev down
		kubectl ocm dev down --all`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(cmd.Flags().Changed("name")); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags(), options.Parts{})
	nameFlag(cmd, &o.Name, defaultName, "name of the playground")
	cmd.Flags().BoolVar(&o.All, "all", false, "all playgrounds of this user")
	return cmd
}

// Validate checks the flags; named tells whether a name was given.
func (o *DownOptions) Validate(named bool) error {
	if o.All && named {
		return options.Usage("--all and --name are given", "leave one of them out")
	}
	if err := checkName(o.Name); err != nil {
		return err
	}
	return o.Change.Check(o.f.UI)
}

// Run removes the playgrounds and prints a line for each.
func (o *DownOptions) Run(context.Context) error {
	root, err := folder()
	if err != nil {
		return err
	}
	names := []string{o.Name}
	if o.All {
		if names, err = lab.Names(root); err != nil {
			return err
		}
	}
	did := []removed{}
	var failed []error
	for _, name := range names {
		action := fleet.Deleted
		_, err := lab.Down(root, name, o.Reads())
		if errors.Is(err, lab.ErrNone) {
			action, err = fleet.Unchanged, nil
		}
		if err != nil {
			failed = append(failed, wordDown(name, err))
			continue
		}
		did = append(did, removed{"playground/" + name, action})
	}
	if err := o.print(did); err != nil {
		return err
	}
	return errors.Join(failed...)
}

func wordDown(name string, err error) error {
	e := &fleet.Error{Message: "the playground " + name + " is not removed", Cause: err.Error(),
		Fix: fleet.Advice("run the same command again; it continues where it stopped"), Err: err}
	if errors.Is(err, process.ErrBusy) {
		e.Cause, e.Fix = "another command works on it", fleet.Advice("wait until that has ended, or interrupt it")
	}
	return e
}

func (o *DownOptions) print(did []removed) error {
	var names []string
	for _, d := range did {
		names = append(names, d.Object)
	}
	if o.Format.Machine() {
		return o.f.UI.Result(o.Format, "PlaygroundDown", did, names)
	}
	suffix := ""
	if o.Reads() {
		suffix = " (dry run)"
	}
	for _, d := range did {
		o.f.UI.Say("%s", fmt.Sprintf("%s %s%s", d.Object, d.Action, suffix))
	}
	return nil
}
