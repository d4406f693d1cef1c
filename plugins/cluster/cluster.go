// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// ListOptions are the flags of cluster list.
type ListOptions struct {
	options.Listing
	// ClusterSet limits the list to the members of a set.
	ClusterSet string
	// Status limits the list to clusters in this state.
	Status string
	// Names limits the list to these clusters.
	Names []string

	f *options.Factory
}

// resource is the prefix of clusters under -o name.
const resource = "managedcluster." + clusterv1.GroupName + "/"

// states are the values of --status.
var states = []string{"pending", "pendingaccept", "pendingcsr", "joining", "available", "notavailable", "unknown", "denied", "deleting"}

// New returns the command "cluster".
func New(f *options.Factory) *cobra.Command {
	cmd := options.Group(&cobra.Command{Use: "cluster", Aliases: []string{"clusters"}, Short: "Show, label, taint, deny and remove managed clusters"})
	cmd.AddCommand(newList(f), newGet(f), newTree(f), newLabel(f), newTaint(f), newCordon(f), newUncordon(f), newDeny(f), newRemove(f))
	return cmd
}

func newList(f *options.Factory) *cobra.Command {
	o := &ListOptions{f: f}
	cmd := &cobra.Command{
		Use: "list [NAME...]", Aliases: []string{"ls"}, Short: "List the managed clusters of the hub", Args: options.Args(0, -1, "the name of a cluster"),
		Long: options.Long(`
		List the managed clusters of the hub of --context: those that do not answer first, then
		those that wait for something, then those that are well. --sort-by sorts them otherwise.`),
		Example: options.Example(`
		kubectl ocm cluster list --context hub
		kubectl ocm cluster list --clusterset prod --status unknown -o wide --context hub`),
		ValidArgsFunction: complete.Clusters(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return f.Do(cmd, o.Validate, o.Run)
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.ClusterSet, "clusterset", "", "members of this cluster set")
	cmd.Flags().StringVar(&o.Status, "status", "", "clusters in this state: pending, available, unknown, ...")
	_ = cmd.RegisterFlagCompletionFunc("clusterset", complete.Sets(f))
	_ = cmd.RegisterFlagCompletionFunc("status", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return states, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// Validate checks the flags.
func (o *ListOptions) Validate() error {
	if o.Status != "" && !slices.Contains(states, strings.ToLower(o.Status)) {
		return options.Usage(fmt.Sprintf("wrong value %q for --status", o.Status), "use one of "+strings.Join(states, ", "))
	}
	return cmp.Or(o.CheckSelector(), o.Check())
}

// Run prints the clusters.
func (o *ListOptions) Run(ctx context.Context, c *fleet.Cluster) error {
	return o.Show(ctx, o.f.UI, func(ctx context.Context) (options.Listed, error) {
		clusters, err := cluster.List(ctx, cluster.ListOptions{Common: fleet.Common{Clock: o.f.UI.Streams.Clock}, Hub: c, Selector: o.Selector,
			Set: o.ClusterSet, Status: o.Status})
		if err != nil {
			return options.Listed{}, err
		}
		if len(o.Names) > 0 {
			clusters, err = o.named(c, clusters)
		}
		return o.listed(clusters), err
	})
}

// named returns the clusters in Names; it is an error if one is missing.
func (o *ListOptions) named(hub *fleet.Cluster, clusters []cluster.Info) ([]cluster.Info, error) {
	var out []cluster.Info
	for _, name := range o.Names {
		i := slices.IndexFunc(clusters, func(c cluster.Info) bool { return c.Name == name })
		if i < 0 {
			e := naming.NoCluster(name, hub)
			if e.Cause = ""; o.Selector != "" || o.ClusterSet != "" || o.Status != "" {
				e.Cause = "or -l, --clusterset or --status filters it out"
			}
			return nil, e
		}
		out = append(out, clusters[i])
	}
	return out, nil
}

func (o *ListOptions) listed(clusters []cluster.Info) options.Listed {
	now := o.f.UI.Streams.Clock.Now()
	out := options.Listed{Kind: "ClusterList", Items: clusters, Empty: "no managed clusters", Table: ui.Table{
		Wide: 7, Least: []string{"MEMORY", "CPU"},
		Heads: []string{"NAME", "STATUS", "SET", "VERSION",
			"CPU", "MEMORY", "ADDONS", "WORKS", "LAST-SEEN", "AGE", "URL", "LABELS", "CLAIMS", "TAINTS", "CLOCK", "AGENT-VERSION", "TUNNEL"}}}
	for i := range clusters {
		c := &clusters[i]
		seen := ""
		if c.LastSeen != nil {
			seen = ui.Age(metav1.NewTime(c.LastSeen.Time), now)
		}
		out.Ranks = append(out.Ranks, rank(c))
		out.Add(resource+c.Name, c.Labels, c.Name, c.Status, c.Set, c.Version,
			amount(c.CPU), memory(c.Memory), ui.Ratio(c.AddOns.Good, c.AddOns.Total), ui.Ratio(c.Works.Good, c.Works.Total), seen, ui.Age(c.Created, now),
			strings.Join(c.URLs, ","), strconv.Itoa(len(c.Labels)), strconv.Itoa(len(c.Claims)), strings.Join(c.Taints, ","), c.Clock, c.AgentVersion, c.Tunnel)
	}
	return out
}

// rank returns how urgent a cluster is.
func rank(c *cluster.Info) options.Rank {
	switch {
	case c.Status == cluster.NotAvailable, c.Status == cluster.Unknown:
		return options.Failing
	case c.Status == cluster.Denied, c.Status == cluster.Available && c.AddOns.Good == c.AddOns.Total && c.Works.Good == c.Works.Total:
		return options.Well
	}
	return options.Pending
}

// amount formats a resource as ALLOCATABLE/CAPACITY.
func amount(a cluster.Amount) string {
	if a.Capacity == "" && a.Allocatable == "" {
		return "-"
	}
	return ui.Dash(a.Allocatable) + "/" + ui.Dash(a.Capacity)
}

// memory formats a resource as amount does, with the unit Gi only once.
func memory(a cluster.Amount) string {
	if strings.HasSuffix(a.Allocatable, "Gi") && strings.HasSuffix(a.Capacity, "Gi") {
		a.Allocatable = strings.TrimSuffix(a.Allocatable, "Gi")
	}
	return amount(a)
}
