// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// EnableOptions are the flags of addon enable.
type EnableOptions struct {
	options.Change
	options.Targets
	// Wanted says what to enable, and with which settings.
	Wanted addon.Options
	// Configs are files with configuration objects, or GROUP/RESOURCE/NAMESPACE/NAME.
	Configs []string

	f *options.Factory
}

func newEnable(f *options.Factory) *cobra.Command {
	o := &EnableOptions{f: f}
	cmd := &cobra.Command{
		Use: "enable NAME...", Short: "Enable add-ons on managed clusters",
		Long: options.Long(`
		Enable add-ons on the given clusters, or change their settings there. Labels, annotations,
		variables and configurations are added to existing ones. A cluster that "addon disable"
		excluded is included again.

		With --placement alone, the placement is added to the install strategy of the add-ons,
		and the hub keeps them on whatever clusters it selects, now and later.`),
		Example: options.Example(`
		kubectl ocm addon enable metrics -c cluster1,cluster2 --context hub
		kubectl ocm addon enable metrics -l env=prod --set LEVEL=debug --wait
		kubectl ocm addon enable metrics -c cluster1 --config small.yaml
		kubectl ocm addon enable metrics --placement apps/everywhere`),
		ValidArgsFunction: complete.AddOns(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Wanted.Names = append(o.Wanted.Names, args...)
			return o.Diffed(f.Do(cmd, o.Validate, o.Run))
		},
	}
	flags := cmd.Flags()
	o.Change.AddFlags(flags, options.Parts{Diff: true, Wait: true, Yes: true})
	o.Targets.AddFlags(cmd, complete.Targets(f))
	flags.Lookup("placement").Usage = "add this Placement, NAMESPACE/NAME, to the install strategy of the add-ons"
	flags.StringVar(&o.Wanted.InstallNamespace, "install-namespace", "",
		"namespace that the agents run in on the clusters; add-ons made from templates take it from their configuration")
	flags.StringArrayVar(&o.Configs, "config", nil, "configuration for these clusters: a file to apply, or GROUP/RESOURCE/NAMESPACE/NAME; may be repeated")
	flags.StringToStringVar(&o.Wanted.Variables, "set", nil, "variables of the add-ons, stored in an AddOnDeploymentConfig for each cluster")
	flags.StringToStringVar(&o.Wanted.Labels, "labels", nil, "labels to add to the add-ons on these clusters")
	flags.StringToStringVar(&o.Wanted.Annotations, "annotations", nil, "annotations to add to the add-ons on these clusters")
	options.Hidden(flags, "config-file", "config")
	options.Hidden(flags, "annotate", "annotations")
	hiddenNames(cmd, &o.Wanted.Names)
	return cmd
}

// hiddenNames adds the hidden flag --names, as clusteradm spells it.
func hiddenNames(cmd *cobra.Command, names *[]string) {
	cmd.Flags().StringSliceVar(names, "names", nil, "")
	cmd.Flags().Lookup("names").Hidden = true
}

// Validate checks the flags.
func (o *EnableOptions) Validate() error {
	if err := cmp.Or(checkNames(o.Wanted.Names), o.Targets.Check(true)); err != nil {
		return err
	}
	if o.Placement != "" {
		switch {
		case len(o.Targets.Clusters) > 0 || o.Selector != "" || o.Targets.Set != "":
			return options.Usage("--placement cannot be combined with other ways to choose clusters", "it changes the install strategy; leave one of them out")
		case o.Wanted.InstallNamespace != "" || len(o.Wanted.Variables) > 0 || len(o.Wanted.Labels) > 0 || len(o.Wanted.Annotations) > 0:
			return options.Usage("--placement can be combined with --config only",
				"put variables and the namespace into an AddOnDeploymentConfig, and name it by --config")
		case o.Wait:
			return options.Usage("--wait cannot be combined with --placement", "kubectl ocm addon status NAME -w")
		}
	}
	return o.Change.Check(o.f.UI)
}

// checkNames returns an error when there are no names, or one is invalid.
func checkNames(names []string) error {
	if len(names) == 0 {
		return options.Usage("the name of an add-on is missing", "kubectl ocm addon list")
	}
	for _, name := range names {
		if err := addon.CheckName(name); err != nil {
			return err
		}
	}
	return nil
}

// Run enables the add-ons and prints what was done.
func (o *EnableOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	p := u.Progress()
	defer p.Close()
	wanted := o.Wanted
	wanted.Common, wanted.Hub, wanted.Targets = o.Common(u, p.Step), hub, o.Targets.Targets
	wanted.Warn = func(text string) { u.Warn("%s", text) }
	if err := o.readConfigs(&wanted); err != nil {
		return err
	}
	if o.Placement != "" { // the install strategy is to be changed, not single clusters
		return o.changeStrategy(ctx, wanted)
	}
	result, failure := addon.Enable(ctx, wanted)
	p.Close()
	if err := o.Change.Clusters(u, "AddOnResult", result, failure, line); err != nil || o.Wait || o.Reads() {
		return err
	}
	u.Next("kubectl ocm addon status " + o.Wanted.Names[0] + ui.ContextFlag(hub))
	return nil
}

// readConfigs reads the values of --config into wanted.
func (o *EnableOptions) readConfigs(wanted *addon.Options) error {
	var files options.Files
	for _, value := range o.Configs {
		_, err := os.Stat(value)
		if value == "-" || err == nil || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(value)) && strings.Count(value, "/") < 2 {
			files.Files = append(files.Files, value)
			continue
		}
		config, err := addon.ParseConfig(value)
		if err != nil {
			return err
		}
		wanted.Configs = append(wanted.Configs, config)
	}
	if len(files.Files) == 0 {
		return nil
	}
	sources, err := files.Sources(o.f.UI)
	if err != nil {
		return err
	}
	wanted.Objects, err = addon.ReadConfigs(sources, o.f.Namespace())
	return err
}

// changeStrategy adds the placement to the install strategies. It asks first when that
// would remove add-ons from clusters.
func (o *EnableOptions) changeStrategy(ctx context.Context, wanted addon.Options) error {
	u := o.f.UI
	if !o.Reads() {
		lost, err := o.lost(ctx, wanted)
		if err != nil {
			return err
		}
		for i, name := range lost {
			lost[i] = "add-on " + name + " is removed, because no placement selects that cluster"
		}
		if err := o.Ask(u, wanted.Hub, "Leave "+strings.Join(o.Wanted.Names, ", ")+" to placements?", lost); err != nil {
			return err
		}
	}
	result, err := addon.EnableByPlacement(ctx, wanted)
	if err != nil {
		return err
	}
	return o.Finish(u, "AddOnResult", result.Items)
}

// lost returns the add-ons that would be removed. It waits until every placement has a
// decision before the user is asked, because without one all add-ons seem lost.
func (o *EnableOptions) lost(ctx context.Context, wanted addon.Options) ([]string, error) {
	lost, err := addon.LostByPlacement(ctx, wanted)
	if err != nil || len(lost) == 0 || o.Yes {
		return lost, err
	}
	if err := addon.AwaitDecided(ctx, wanted); err != nil {
		return nil, err
	}
	return addon.LostByPlacement(ctx, wanted)
}

// DisableOptions are the flags of addon disable.
type DisableOptions struct {
	options.Change
	options.Targets
	// Names of the add-ons.
	Names []string

	f *options.Factory
}

func newDisable(f *options.Factory) *cobra.Command {
	o := &DisableOptions{f: f}
	cmd := &cobra.Command{
		Use: "disable NAME...", Short: "Disable add-ons on managed clusters",
		Long: options.Long(`
		Remove add-ons from the given clusters. Where an install strategy would bring one back, the
		cluster is excluded from it until "addon enable" includes it again. The command returns
		when the add-ons are gone; if that does not happen in time, it reports why.`),
		Example: options.Example(`
		kubectl ocm addon disable metrics -c cluster1 --context hub
		kubectl ocm addon disable metrics --all --yes --context hub`),
		ValidArgsFunction: complete.AddOns(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = append(o.Names, args...)
			return o.Diffed(f.Do(cmd, o.Validate, o.Run))
		},
	}
	o.Change.AddFlags(cmd.Flags(), options.Parts{Diff: true, Wait: true, WaitDefault: true, Yes: true})
	o.Targets.AddFlags(cmd, complete.Targets(f))
	hiddenNames(cmd, &o.Names)
	return cmd
}

// Validate checks the flags.
func (o *DisableOptions) Validate() error {
	if err := checkNames(o.Names); err != nil {
		return err
	}
	return o.CheckAll(&o.Change, o.f.UI)
}

// Run disables the add-ons and prints what was done.
func (o *DisableOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	p := u.Progress()
	defer p.Close()
	wanted := addon.Options{Common: o.Common(u, p.Step), Hub: hub, Names: o.Names, Targets: o.Targets.Targets, Warn: func(text string) { u.Warn("%s", text) }}
	if !o.Reads() {
		found, err := addon.Find(ctx, wanted)
		if err != nil {
			return err
		}
		for i, name := range found {
			found[i] = "add-on " + name
		}
		if err := o.Ask(u, hub, "Disable "+strings.Join(o.Names, ", ")+"?", found); err != nil {
			return err
		}
	}
	result, failure := addon.Disable(ctx, wanted)
	p.Close()
	return o.Change.Clusters(u, "AddOnResult", result, failure, disabled)
}

// disabled describes what was done on one cluster.
func disabled(d fleet.ClusterChange) string {
	if d.Action == fleet.Configured {
		return "managedclusteraddon/" + d.Object.GetName() + " left out on " + d.Cluster
	}
	return line(d)
}
