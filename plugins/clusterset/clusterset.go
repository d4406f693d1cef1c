// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/clusterset"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// New returns the command "clusterset".
func New(f *options.Factory) *cobra.Command {
	cmd := options.Group(&cobra.Command{Use: "clusterset", Aliases: []string{"clustersets"}, Short: "Group managed clusters, and let namespaces use the groups"})
	cmd.AddCommand(newList(f), newCreate(f), newAdd(f), newDrop(f), newBind(f), newUnbind(f), newDelete(f))
	return cmd
}

// ListOptions are the flags of clusterset list.
type ListOptions struct {
	options.Listing

	f *options.Factory
}

func newList(f *options.Factory) *cobra.Command {
	o := &ListOptions{f: f}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the cluster sets of the hub", Args: options.Args(0, 0, "list"),
		Example: options.Example(`
		kubectl ocm clusterset list --context hub`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.Do(cmd, func() error { return cmp.Or(o.CheckSelector(), o.Check()) }, o.Run)
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

// Run prints the sets.
func (o *ListOptions) Run(ctx context.Context, c *fleet.Cluster) error {
	return o.Show(ctx, o.f.UI, func(ctx context.Context) (options.Listed, error) {
		sets, err := clusterset.List(ctx, clusterset.ListOptions{Hub: c, Selector: o.Selector})
		return o.listed(sets), err
	})
}

func (o *ListOptions) listed(sets []clusterset.Info) options.Listed {
	now := o.f.UI.Streams.Clock.Now()
	out := options.Listed{Kind: "ClusterSetList", Items: sets, Empty: "no cluster sets", Table: ui.Table{Wide: 3, Heads: []string{"NAME", "SELECTOR", "CLUSTERS",
		"AVAILABLE", "BOUND-NAMESPACES", "AGE", "MEMBERS", "MANAGED-NAMESPACES", "EMPTY"}}}
	for i := range sets {
		s := &sets[i]
		out.Add("managedclusterset."+clusterv1beta2.GroupName+"/"+s.Name, s.Labels, s.Name, selector(s),
			strconv.Itoa(s.Clusters.Total), strconv.Itoa(s.Clusters.Good), strings.Join(s.Bound, ","), ui.Age(s.Created, now),
			strings.Join(s.Members, ","), strings.Join(s.Namespaces, ","), s.Empty)
	}
	return out
}

// selector shows how clusters become members of a set. The label of cluster sets is
// shortened to its last word.
func selector(s *clusterset.Info) string {
	switch {
	case s.Problem != "":
		return "<none>"
	case s.Selector == "":
		return "<all>"
	}
	return strings.TrimPrefix(s.Selector, strings.TrimSuffix(clusterv1.LabelClusterSet, "clusterset"))
}
