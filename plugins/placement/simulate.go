// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// SimulateOptions are the flags of placement simulate.
type SimulateOptions struct {
	options.Output
	// Name of a placement on the hub, or File with one that may not exist yet.
	Name, File string
	// With are files with clusters to add; Without are clusters to leave out.
	With, Without []string

	f *options.Factory
}

func newSimulate(f *options.Factory) *cobra.Command {
	o := &SimulateOptions{f: f}
	cmd := &cobra.Command{
		Use:     "simulate [NAME] [-f FILE]",
		Aliases: []string{"what-if"},
		Short:   "Show what a placement would select",
		Args:    options.Args(0, 1, "the name of the placement"),
		Long: options.Long(`
		Compute what a placement would select: one in a file that is new or would replace the one
		on the hub, or one on the hub if clusters were added or removed. Nothing is written. The
		result is compared with the live decision: + for clusters that would be added, - for those
		that would be removed, ~ for those that would change their decision group. The exit code
		is 0 if the decision stays the same, 1 if it changes, and 2 on errors.`),
		Example: options.Example(`
		kubectl ocm placement simulate -f placement.yaml --context hub
		kubectl ocm placement simulate shop/web --without cluster1 --context hub
		kubectl ocm placement simulate shop/web --with-cluster c9.yaml -o json --context hub`),
		ValidArgsFunction: complete.Placements(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Name = args[0]
			}
			return asComparison(o.Run(cmd.Context()))
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&o.File, "filename", "f", "", "file with the placement, - for standard input")
	cmd.Flags().StringSliceVar(&o.With, "with-cluster", nil, "files with managed clusters to add to the fleet")
	cmd.Flags().StringSliceVar(&o.Without, "without", nil, "managed clusters to leave out of the fleet")
	_ = cmd.RegisterFlagCompletionFunc("without", complete.Clusters(f))
	return cmd
}

// asComparison gives a failure the exit code 2, because 1 means that there are differences.
func asComparison(err error) error {
	var e *fleet.Error
	if errors.As(err, &e) && e.Kind == fleet.Failed {
		e.Kind = fleet.Usage
	}
	return err
}

// read checks the flags and reads the files.
func (o *SimulateOptions) read() (placement.ExplainOptions, error) {
	wanted := placement.ExplainOptions{Common: fleet.Common{Clock: o.f.UI.Streams.Clock}, Without: o.Without}
	switch {
	case (o.Name == "") == (o.File == ""):
		return wanted, options.Usage(
			"give either the name of a placement or a file with one",
			"kubectl ocm placement simulate NAME, or kubectl ocm placement simulate -f FILE",
		)
	case o.File == "-" && slices.Contains(o.With, "-"):
		return wanted, options.Usage("standard input is given twice", "give the placement or the clusters by a file")
	case o.Name != "" && len(o.With)+len(o.Without) == 0:
		return wanted, options.Usage(
			"nothing would be different",
			"add --without CLUSTER or --with-cluster FILE; or see what is: kubectl ocm placement explain "+o.Name,
		)
	}
	if err := o.Format.Check(); err != nil {
		return wanted, err
	}
	if o.Name != "" {
		found, err := parseKeys(o.f, []string{o.Name})
		if err != nil {
			return wanted, err
		}
		wanted.Key = found[0]
	} else {
		source, err := options.Text(o.f.UI, "-f", o.File)
		if err != nil {
			return wanted, err
		}
		if wanted.Placement, err = placement.Read(source, o.f.Namespace()); err != nil {
			return wanted, err
		}
		wanted.Key = placement.KeyOf(wanted.Placement)
	}
	var sources []manifest.Source
	for _, name := range o.With {
		source, err := options.Text(o.f.UI, "--with-cluster", name)
		if err != nil {
			return wanted, err
		}
		sources = append(sources, source)
	}
	var err error
	wanted.With, err = placement.ReadClusters(sources)
	return wanted, err
}

// Run decides the placement and prints what would change.
func (o *SimulateOptions) Run(ctx context.Context) error {
	wanted, err := o.read()
	if err != nil {
		return err
	}
	if wanted.Hub, err = o.f.Cluster(""); err != nil {
		return err
	}
	e, hints, err := placement.Explain(ctx, wanted)
	if err != nil {
		return err
	}
	e.Hints = hintTexts(hints)
	if err := show(o.f.UI, o.Format, "PlacementSimulation", &e, nil); err != nil {
		return err
	}
	if e.Live.Same {
		return nil
	}
	if !o.Format.Machine() {
		o.f.UI.Say("")
		for _, part := range differences(&e.Live) {
			for _, name := range part.names {
				o.f.UI.Say("%s %s", part.sign, name)
			}
		}
		if e.Live.Reordered {
			o.f.UI.Say("in another order")
		}
	}
	return ui.Exit(ui.ExitFailed)
}
