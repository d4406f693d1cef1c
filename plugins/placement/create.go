// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// CreateOptions are the flags of placement create.
type CreateOptions struct {
	options.Change
	// Wanted is the placement; Words are the flags of its spec.
	Wanted placement.CreateOptions
	Words  Words
	// Count is how many clusters to select; it is ignored unless --count is given.
	Count int32
	// Explain shows what the placement selects before it is created.
	Explain bool

	f *options.Factory
}

func newCreate(f *options.Factory) *cobra.Command {
	o := &CreateOptions{f: f}
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a placement", Args: options.Args(1, 1, "the name of the placement"),
		Long: options.Long(`
		Create a placement in the namespace of -n. It selects from the cluster sets that are bound
		to the namespace. A cluster must match one of the selectors and expressions, or all of them
		with --and. Clusters with taints are left out unless the taints are tolerated. Of the rest,
		those with the highest scores are selected.`),
		Example: options.Example(`
		kubectl ocm placement create web -n shop --count 2 --label-selectors region=eu --context hub
		kubectl ocm placement create gpu -n shop --claim-selectors gpu=a100 --toleration dedicated=ml --explain --context hub
		kubectl ocm placement create big -n shop --count 3 --prioritizer ResourceAllocatableCPU:2 --spread region:1:DoNotSchedule --dry-run`),
		ValidArgsFunction: complete.None,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("count") {
				o.Words.Count = &o.Count
			}
			if err := o.Validate(args[0]); err != nil {
				return err
			}
			return o.Diffed(o.Run(cmd.Context()))
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *CreateOptions) addFlags(cmd *cobra.Command) {
	flags, w := cmd.Flags(), &o.Words
	o.Change.AddFlags(flags, options.Parts{Diff: true})
	flags.StringSliceVar(&w.Sets, "clustersets", nil, "cluster sets to select from; default: all that are bound to the namespace")
	flags.StringArrayVar(&w.Labels, "label-selectors", nil, "selectors of labels, for example region=eu or 'env in (prod,test)'")
	flags.StringArrayVar(&w.Claims, "claim-selectors", nil, "selectors of cluster claims, for example platform.open-cluster-management.io=aws")
	flags.StringArrayVar(&w.CEL, "cel", nil, "a CEL expression over managedCluster; may be repeated")
	flags.BoolVar(&w.And, "and", false, "a cluster must match all selectors and expressions instead of one")
	flags.Int32Var(&o.Count, "count", 0, "how many clusters to select; default: all that match")
	flags.StringSliceVar(
		&w.Prioritizers, "prioritizer", nil,
		"what to rank by: NAME[:WEIGHT] or AddOn:RESOURCE:SCORE[:WEIGHT]; NAME is Balance, Steady, ResourceAllocatableCPU or ResourceAllocatableMemory",
	)
	flags.BoolVar(&w.Exact, "exact", false, "rank by --prioritizer only; otherwise Balance and Steady count too")
	flags.StringArrayVar(&w.Tolerations, "toleration", nil, "a taint to tolerate: KEY[=VALUE][:EFFECT][:DURATION], '*' for all; may be repeated")
	flags.StringArrayVar(
		&w.Spread, "spread", nil,
		"spread evenly over a label or claim: [label:|claim:]KEY[:MAXSKEW[:DoNotSchedule|ScheduleAnyway]]; may be repeated",
	)
	flags.StringArrayVar(&w.Groups, "group", nil, "a decision group: NAME=SELECTOR or NAME=claim:SELECTOR; may be repeated")
	flags.StringVar(&w.GroupSize, "clusters-per-group", "", "maximum number of clusters in a decision group: a number or a percentage")
	flags.StringVar(&w.SortBy, "sort-by", "", "order of the decisions: ClusterName or Score")
	flags.BoolVar(&o.Wanted.Overwrite, "overwrite", false, "replace the spec of an existing placement")
	flags.BoolVar(&o.Explain, "explain", false, "show what it selects, and why, before it is created")
	options.Hidden(flags, "prioritizers", "prioritizer")
	options.Hidden(flags, "groups", "group")
	_ = cmd.RegisterFlagCompletionFunc("clustersets", complete.Sets(o.f))
	_ = cmd.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions([]string{"ClusterName", "Score"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc(
		"prioritizer",
		cobra.FixedCompletions(
			[]string{"Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory", "AddOn:"},
			cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace,
		),
	)
}

// Validate checks the flags and the placement built from them. Nothing is sent.
func (o *CreateOptions) Validate(name string) error {
	found, err := parseKeys(o.f, []string{name})
	if err != nil {
		return err
	}
	o.Wanted.Key = found[0]
	w := &o.Words
	w.Labels, w.Claims = splitAll(w.Labels), splitAll(w.Claims)
	if err := o.Check(o.f.UI); err != nil {
		return err
	}
	if o.Wanted.Spec, err = w.Spec(); err != nil {
		return err
	}
	_, err = o.Wanted.Placement(nil)
	return err
}

// splitAll splits those values of a flag that hold several selectors.
func splitAll(values []string) []string {
	var out []string
	for _, value := range values {
		out = append(out, splitSelectors(value)...)
	}
	return out
}

// Run creates the placement and prints what was done.
func (o *CreateOptions) Run(ctx context.Context) error {
	u := o.f.UI
	hub, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	o.Wanted.Hub, o.Wanted.Common = hub, o.Common(u, nil)
	if o.Explain {
		if err := o.explain(ctx); err != nil {
			return err
		}
	}
	result, err := placement.Create(ctx, o.Wanted, func(n fleet.Note) { u.Warn("%s", ui.Told(n, ": ")) })
	if err != nil {
		return err
	}
	if err := o.Finish(u, "PlacementResult", result.Items); err != nil {
		return err
	}
	if !o.Reads() && !o.Format.Machine() {
		u.Next("kubectl ocm placement explain " + o.Wanted.Key.String() + ui.ContextFlag(hub))
	}
	return nil
}

// explain shows what the placement would select. The report is not the command's
// result, so it goes to stderr.
func (o *CreateOptions) explain(ctx context.Context) error {
	p, err := o.Wanted.Placement(nil)
	if err != nil {
		return err
	}
	e, hints, err := placement.Explain(ctx, placement.ExplainOptions{Common: fleet.Common{Clock: o.f.UI.Streams.Clock}, Hub: o.Wanted.Hub, Key: o.Wanted.Key,
		Placement: p})
	if err != nil || o.f.UI.Quiet {
		return err
	}
	e.Hints = hintTexts(hints)
	toStderr := *o.f.UI
	toStderr.Streams.Out = toStderr.Streams.Err
	return show(&toStderr, "", "PlacementExplanation", &e, nil)
}
