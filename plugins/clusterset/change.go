// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/clusterset"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// ChangeOptions are the flags of the commands that change a set or its bindings.
type ChangeOptions struct {
	options.Change
	// Name of the set.
	Name string
	// Selector selects the members of a new set by labels.
	Selector string
	// selects is set when --selector is given.
	selects bool
	// Unbind also deletes the bindings of a deleted set.
	Unbind bool

	f *options.Factory
	// do makes the change; ask asks for confirmation first, nil if none is needed.
	do  func(context.Context, clusterset.Options) (clusterset.Result, error)
	ask func(context.Context, clusterset.Options) error
	// notFound returns the error of a deletion that found nothing; nil for other changes.
	notFound func(fleet.Change, *fleet.Cluster) *fleet.Error
}

func newCreate(f *options.Factory) *cobra.Command {
	o := &ChangeOptions{f: f, do: clusterset.Create}
	cmd := o.command(&cobra.Command{
		Use: "create SET", Short: "Create a cluster set",
		Long: options.Long(`
		Create a cluster set on the hub of --context. Clusters are added by "clusterset add", or
		selected by their labels if --selector is given; such sets may overlap.`),
		Example: options.Example(`
		kubectl ocm clusterset create prod --context hub
		kubectl ocm clusterset create eu --selector region=eu --context hub`),
	}, options.Parts{Diff: true})
	cmd.ValidArgsFunction = complete.None
	cmd.Flags().StringVar(&o.Selector, "selector", "", "label selector of the members; without it, clusters are added by name")
	return cmd
}

func newBind(f *options.Factory) *cobra.Command {
	o := &ChangeOptions{f: f}
	o.do = o.bind
	return o.command(&cobra.Command{
		Use: "bind SET", Short: "Let the placements of a namespace use a set",
		Example: options.Example(`
		kubectl ocm clusterset bind prod -n shop --context hub`),
	}, options.Parts{Diff: true})
}

func newUnbind(f *options.Factory) *cobra.Command {
	o := &ChangeOptions{f: f, do: clusterset.Unbind}
	o.ask = o.askUnbind
	o.notFound = func(c fleet.Change, hub *fleet.Cluster) *fleet.Error {
		return naming.NoBinding(c.Object.GetNamespace(), o.Name, hub)
	}
	return o.command(&cobra.Command{
		Use: "unbind SET", Short: "Stop the placements of a namespace from using a set",
		Example: options.Example(`
		kubectl ocm clusterset unbind prod -n shop --context hub`),
	}, options.Parts{Diff: true, Yes: true, Deletes: true})
}

func newDelete(f *options.Factory) *cobra.Command {
	o := &ChangeOptions{f: f, do: clusterset.Delete}
	o.ask = o.askDelete
	o.notFound = func(_ fleet.Change, hub *fleet.Cluster) *fleet.Error { return naming.NoSet(o.Name, hub) }
	cmd := o.command(&cobra.Command{
		Use: "delete SET", Aliases: []string{"rm"}, Short: "Delete a cluster set that is not in use",
		Long: options.Long(`
		Delete a cluster set of the hub of --context. The command refuses to delete a set that
		clusters were added to, or that namespaces are bound to; --unbind deletes the bindings too.`),
		Example: options.Example(`
		kubectl ocm clusterset delete prod --context hub`),
	}, options.Parts{Diff: true, Yes: true, Deletes: true})
	cmd.Flags().BoolVar(&o.Unbind, "unbind", false, "delete its bindings too; their placements lose its clusters")
	return cmd
}

func (o *ChangeOptions) command(cmd *cobra.Command, parts options.Parts) *cobra.Command {
	cmd.Args = options.Args(1, 1, "the name of the set")
	cmd.ValidArgsFunction = complete.Sets(o.f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Name = args[0]
		o.selects = cmd.Flags().Changed("selector")
		return o.Diffed(o.f.Do(cmd, o.Validate, o.Run))
	}
	o.AddFlags(cmd.Flags(), parts)
	return cmd
}

// Validate checks the name and the flags.
func (o *ChangeOptions) Validate() error {
	if err := clusterset.CheckName(o.Name); err != nil {
		return err
	}
	return o.Check(o.f.UI)
}

// Run makes the change and prints what was done.
func (o *ChangeOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	wanted := clusterset.Options{Common: o.Common(u, nil), Hub: hub, Name: o.Name, Namespace: o.f.Namespace(), Unbind: o.Unbind}
	if o.selects {
		wanted.Selector = &o.Selector
	}
	if o.ask != nil && !o.Reads() {
		if err := o.ask(ctx, wanted); err != nil {
			return err
		}
	}
	result, err := o.do(ctx, wanted)
	if err != nil {
		return err
	}
	if o.notFound != nil {
		if err := o.Absent(result.Items, func(c fleet.Change) *fleet.Error { return o.notFound(c, hub) }); err != nil {
			return err
		}
	}
	if done, err := o.Printed(u, "ClusterSetResult", result, result.Items); done || err != nil {
		return err
	}
	for _, c := range result.Items {
		u.Say("%s %s%s", c.Name(), c.Action, inNamespace(c))
	}
	return nil
}

// inNamespace returns " in NAMESPACE", or "" for a cluster-scoped object.
func inNamespace(c fleet.Change) string {
	if namespace := c.Object.GetNamespace(); namespace != "" {
		return " in " + namespace
	}
	return ""
}

// bind binds the set, and notes when no placement in the namespace uses it yet.
func (o *ChangeOptions) bind(ctx context.Context, wanted clusterset.Options) (clusterset.Result, error) {
	result, err := clusterset.Bind(ctx, wanted)
	if err != nil || o.Reads() {
		return result, err
	}
	used, err := clusterset.PlacementsIn(ctx, wanted.Hub, wanted.Namespace)
	if err == nil && len(used) == 0 {
		o.f.UI.Note("no placement in namespace %s uses it yet", wanted.Namespace)
	}
	return result, err
}

// askUnbind shows the placements that may lose clusters, and asks if there are any.
func (o *ChangeOptions) askUnbind(ctx context.Context, wanted clusterset.Options) error {
	used, err := clusterset.PlacementsIn(ctx, wanted.Hub, wanted.Namespace)
	if err != nil {
		return err
	}
	targets := []string{"hub: " + wanted.Hub.String()}
	for _, name := range used {
		targets = append(targets, fmt.Sprintf("placement %s/%s can no longer select clusters of %s", wanted.Namespace, name, o.Name))
	}
	return o.f.UI.Confirm(o.Yes || len(used) == 0, "Unbind "+o.Name+" from "+wanted.Namespace+"?", targets)
}

// askDelete shows what would be deleted along with the set, and asks.
func (o *ChangeOptions) askDelete(ctx context.Context, wanted clusterset.Options) error {
	wanted.DryRun = fleet.DryRunClient
	result, err := clusterset.Delete(ctx, wanted)
	if err != nil {
		return err
	}
	targets := []string{"hub: " + wanted.Hub.String()}
	for _, c := range result.Items {
		if c.Action == fleet.Deleted {
			targets = append(targets, c.Name()+inNamespace(c))
		}
	}
	return o.f.UI.Confirm(o.Yes || len(targets) == 1, "Delete the cluster set "+o.Name+"?", targets)
}
