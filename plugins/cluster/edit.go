// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// EditOptions are the flags of cluster label, taint, cordon and uncordon.
type EditOptions struct {
	options.Change
	options.Targets
	// Overwrite replaces values that are already there.
	Overwrite bool
	// Keep lets placements keep the clusters that they have selected.
	Keep bool

	f *options.Factory
	// labels or taints are the change; the other one is nil.
	labels *cluster.LabelChange
	taints *cluster.TaintChange
	// twice is the key of a label that is given two values; "" if there is none.
	twice string
	// complete, unless nil, completes the change when the flags are known.
	complete func()
	// done says what was done to a cluster.
	done string
}

// label takes an argument KEY=VALUE or KEY-.
func (o *EditOptions) label(word string) {
	if key, value, set := strings.Cut(word, "="); set {
		if before, twice := o.labels.Set[key]; twice && before != value {
			o.twice = key
		}
		o.labels.Set[key] = value
		return
	}
	o.labels.Remove = append(o.labels.Remove, strings.TrimSuffix(word, "-"))
}

// taint takes an argument KEY[=VALUE]:EFFECT, KEY:EFFECT- or KEY-.
func (o *EditOptions) taint(word string) {
	text, removed := strings.CutSuffix(word, "-")
	text, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(text, "=")
	t := clusterv1.Taint{Key: key, Value: value, Effect: clusterv1.TaintEffect(effect)}
	if removed {
		o.taints.Remove = append(o.taints.Remove, t)
		return
	}
	o.taints.Add = append(o.taints.Add, t)
}

// command adds the flags to cmd. take receives the arguments that name no cluster; it is nil if
// there are none.
func (o *EditOptions) command(cmd *cobra.Command, take func(string)) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.ValidArgsFunction = complete.Clusters(o.f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, word := range args {
			// The name of a cluster has no such characters, and does not end with a dash.
			if take != nil && (strings.ContainsAny(word, "=:/") || strings.HasSuffix(word, "-")) {
				take(word)
				continue
			}
			o.Targets.Targets.Clusters = append(o.Targets.Targets.Clusters, word)
		}
		return o.Diffed(o.f.Do(cmd, o.Validate, o.Run))
	}
	o.Change.AddFlags(cmd.Flags(), options.Parts{Diff: true, Yes: o.taints != nil})
	o.Targets.AddFlags(cmd, complete.Targets(o.f))
	return cmd
}

func (o *EditOptions) overwriteFlag(cmd *cobra.Command, what string) *cobra.Command {
	cmd.Flags().BoolVar(&o.Overwrite, "overwrite", false, "replace a "+what+" that has another value")
	return cmd
}

func newLabel(f *options.Factory) *cobra.Command {
	o := &EditOptions{f: f, labels: &cluster.LabelChange{Set: map[string]string{}}, done: "labelled"}
	return o.overwriteFlag(o.command(&cobra.Command{
		Use: "label NAME... KEY=VALUE... KEY-...", Short: "Set and remove labels of clusters",
		Long: options.Long(`
		Set labels of managed clusters (KEY=VALUE), and remove them (KEY-). Placements and cluster
		sets select clusters by their labels. The set of a cluster is changed by "clusterset add".`),
		Example: options.Example(`
		kubectl ocm cluster label cluster1 env=prod region=eu --context hub
		kubectl ocm cluster label -l region=eu tier- --context hub
		kubectl ocm cluster label cluster1 env=test --overwrite --context hub`),
	}, o.label), "label")
}

func newTaint(f *options.Factory) *cobra.Command {
	o := &EditOptions{f: f, taints: &cluster.TaintChange{}, done: "tainted"}
	cmd := o.overwriteFlag(o.command(&cobra.Command{
		Use: "taint NAME... KEY[=VALUE]:EFFECT... KEY[:EFFECT]-...", Short: "Add and remove taints of clusters",
		Long: options.Long(`
		Add taints to managed clusters, and remove them (KEY- for all effects, KEY:EFFECT- for
		one). They concern the placements that do not tolerate them: NoSelect takes the cluster
		out of their decisions, NoSelectIfNew only keeps it out of new ones, and PreferNoSelect
		makes it the last choice. What the hub brought to a cluster for a placement is removed
		when the placement drops the cluster.`),
		Example: options.Example(`
		kubectl ocm cluster taint cluster1 gpu=true:NoSelect --context hub
		kubectl ocm cluster taint cluster1 gpu- --context hub`),
	}, o.taint), "taint")
	clusters := cmd.ValidArgsFunction
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		key, _, effect := strings.Cut(typed, ":")
		if !effect {
			return clusters(cmd, args, typed)
		}
		var out []string
		for _, e := range cluster.Effects() {
			out = append(out, key+":"+e)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func newCordon(f *options.Factory) *cobra.Command {
	o := &EditOptions{f: f, taints: &cluster.TaintChange{}, Overwrite: true, done: "cordoned"}
	cmd := o.command(&cobra.Command{
		Use: "cordon NAME...", Short: "Keep placements from selecting clusters",
		Long: options.Long(`
		Keep placements from selecting managed clusters, by the taint ` + clusterv1.TaintCordoned + `.
		Placements drop the clusters, and the hub removes what it brought there for them; with
		--keep, only new decisions leave the clusters out. Placements that tolerate the taint are
		not concerned, and neither are works that were sent to a cluster by its name.`),
		Example: options.Example(`
		kubectl ocm cluster cordon cluster1 --context hub
		kubectl ocm cluster cordon -l region=eu --keep --context hub`),
	}, nil)
	o.complete = o.cordon
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "let placements keep the clusters that they have selected")
	return cmd
}

func newUncordon(f *options.Factory) *cobra.Command {
	o := &EditOptions{f: f, taints: &cluster.TaintChange{Remove: []clusterv1.Taint{{Key: clusterv1.TaintCordoned}}}, done: "uncordoned"}
	return o.command(&cobra.Command{
		Use: "uncordon NAME...", Short: "Let placements select clusters again",
		Long: options.Long(`
		Let placements select managed clusters again that "cluster cordon" excluded.`),
		Example: options.Example(`
		kubectl ocm cluster uncordon cluster1 --context hub`),
	}, nil)
}

// cordon sets the taint of cordon, and removes one with the other effect.
func (o *EditOptions) cordon() {
	effects := []clusterv1.TaintEffect{clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectNoSelectIfNew}
	if o.Keep {
		effects[0], effects[1] = effects[1], effects[0]
	}
	o.taints.Add = []clusterv1.Taint{{Key: clusterv1.TaintCordoned, Effect: effects[0]}}
	o.taints.Remove = []clusterv1.Taint{{Key: clusterv1.TaintCordoned, Effect: effects[1]}}
}

// Validate checks the arguments and flags.
func (o *EditOptions) Validate() error {
	if o.complete != nil {
		o.complete()
	}
	var err error
	switch {
	case o.twice != "":
		err = options.Usage("the label "+o.twice+" is given two values", "leave one of them out")
	case o.labels != nil:
		err = o.labels.Check()
	default:
		err = o.taints.Check()
	}
	return cmp.Or(o.CheckAll(&o.Change, o.f.UI), err)
}

// Run changes the clusters and prints what was done.
func (o *EditOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	wanted := cluster.EditOptions{Common: o.Common(o.f.UI, nil), Hub: hub, Targets: o.Targets.Targets, Overwrite: o.Overwrite}
	var result fleet.ClusterChanges
	var failure error
	if o.labels != nil {
		result, failure = cluster.Label(ctx, wanted, *o.labels)
	} else {
		if err := o.confirm(ctx, hub); err != nil {
			return err
		}
		result, failure = cluster.Taint(ctx, wanted, *o.taints)
	}
	return o.Change.Clusters(o.f.UI, "ClusterResult", result, failure, func(d fleet.ClusterChange) string {
		if d.Action == fleet.Unchanged {
			return fmt.Sprintf("managedcluster/%s unchanged", d.Cluster)
		}
		return fmt.Sprintf("managedcluster/%s %s", d.Cluster, o.done)
	})
}

// confirm shows which placements would lose clusters, and asks if any would.
func (o *EditOptions) confirm(ctx context.Context, hub *fleet.Cluster) error {
	if o.Reads() {
		return nil
	}
	names, err := o.Targets.Resolve(ctx, hub)
	if err != nil {
		return err
	}
	losses, err := placement.Losing(ctx, hub, names, o.taints.Add)
	if err != nil {
		return err
	}
	var lines []string
	for _, l := range losses {
		lines = append(lines, fmt.Sprintf("placement %s: drops %s; what it brought there is removed", l.Placement, fleet.Listed(l.Clusters)))
	}
	return o.Ask(o.f.UI, hub, "Take clusters away from "+ui.Many(len(losses), "placement")+"?", lines)
}
