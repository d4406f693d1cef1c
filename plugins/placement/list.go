// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// ListOptions are the flags of placement list.
type ListOptions struct {
	options.Listing
	// Names limits the list to these placements, NAME or NAMESPACE/NAME.
	Names []string

	f *options.Factory
}

func newList(f *options.Factory) *cobra.Command {
	o := &ListOptions{f: f}
	cmd := &cobra.Command{
		Use: "list [NAME...]", Aliases: []string{"ls"}, Short: "List placements and what they select", Args: options.Args(0, -1, "the name of a placement"),
		Long: options.Long(`
		List the placements of all namespaces, or of the one given with -n, with the clusters in
		their decisions.`),
		Example: options.Example(`
		kubectl ocm placement list --context hub
		kubectl ocm placement list -n shop -o wide --context hub`),
		ValidArgsFunction: complete.Placements(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("all-namespaces").Usage = "all namespaces, which is the default"
	return cmd
}

// Validate checks the flags.
func (o *ListOptions) Validate() error {
	if _, err := labels.Parse(o.Selector); err != nil {
		return options.Usage("wrong label selector "+strconv.Quote(o.Selector), "for example -l env=prod")
	}
	return o.Check()
}

// Run prints the placements.
func (o *ListOptions) Run(ctx context.Context) error {
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	namespace := o.f.GivenNamespace()
	if o.All {
		namespace = ""
	}
	return o.Show(ctx, o.f.UI, func(ctx context.Context) (options.Listed, error) {
		found, err := placement.List(ctx, placement.ListOptions{Hub: c, Namespace: namespace, Names: o.Names, Selector: o.Selector})
		if err != nil {
			return options.Listed{}, err
		}
		for _, name := range o.Names {
			if !slices.ContainsFunc(found, func(p placement.Info) bool { return p.Called(name) }) {
				return options.Listed{}, naming.NoPlacement(name, c)
			}
		}
		return o.listed(found), nil
	})
}

func (o *ListOptions) listed(found []placement.Info) options.Listed {
	now := o.f.UI.Streams.Clock.Now()
	out := options.Listed{Kind: "PlacementList", Items: found, Empty: "no placements", Table: ui.Table{Wide: 4, Heads: []string{"NAMESPACE", "NAME", "SATISFIED",
		"SELECTED", "WANTED", "SETS", "GROUPS", "AGE", "REASON", "CLUSTERS", "PREDICATES", "PRIORITIZERS", "SPREAD"}}}
	for i := range found {
		p := &found[i]
		out.Names = append(out.Names, resource+p.Name)
		out.Labels = append(out.Labels, p.Labels)
		out.Table.Rows = append(out.Table.Rows, []string{p.Namespace, p.Name, ui.Dash(p.Satisfied), strconv.Itoa(p.Selected),
			wantedText(p.Wanted), setsText(p), strconv.Itoa(p.Groups), ui.Age(p.Created, now), ui.Dash(p.Reason),
			ui.Dash(strings.Join(p.Clusters, ",")), ui.Dash(strings.Join(p.Predicates, " or ")),
			ui.Dash(strings.Join(p.Prioritizers, ",")), ui.Dash(strings.Join(p.Spread, ","))})
	}
	return out
}

// wantedText returns how many clusters a placement wants, "all" for nil.
func wantedText(n *int32) string {
	if n == nil {
		return "all"
	}
	return strconv.Itoa(int(*n))
}

// setsText lists the sets that a placement selects from, and those that it names without
// being bound to them.
func setsText(p *placement.Info) string {
	words := slices.Clone(p.Sets)
	for _, name := range p.Unbound {
		words = append(words, name+"(unbound)")
	}
	return ui.Dash(strings.Join(words, ","))
}
