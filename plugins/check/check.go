// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// The values of the first argument, which limits the check.
const (
	onlyHub       = "hub"
	onlySpoke     = "spoke"
	onlyCluster   = "cluster"
	onlyPlacement = "placement"
	onlyAddOn     = "addon"
)

// areas are all values of the first argument; those in named are followed by names.
var (
	areas = []string{onlyHub, onlySpoke, onlyCluster, onlyPlacement, onlyAddOn}
	named = []string{onlyCluster, onlyPlacement, onlyAddOn}
)

// Options are the flags of check.
type Options struct {
	options.Output
	// Only limits the check to one of areas; empty means everything.
	Only string
	// Names of the clusters, placements or add-ons.
	Names []string
	// HubContext is the context of the hub when --context is a managed cluster.
	HubContext string
	// FailOn is the lowest severity that makes the exit code 3.
	FailOn string
	// Skip are the codes of checks to leave out.
	Skip []string
	// Short prints only what is wrong.
	Short bool
	// List prints the catalogue, Explain one entry of it.
	List    bool
	Explain string

	f          *options.Factory
	placements []types.NamespacedName
}

// New returns the command "check".
func New(f *options.Factory) *cobra.Command {
	o := &Options{f: f}
	completions := map[string]complete.Func{onlyPlacement: complete.Placements(f), onlyAddOn: complete.AddOns(f), onlyCluster: complete.Clusters(f)}
	cmd := &cobra.Command{
		Use:     "check [hub|spoke|cluster NAME...|placement NAME...|addon NAME...]",
		Aliases: []string{"doctor"}, Short: "Find what keeps the fleet from working, and how to fix it",
		Long: options.Long(`
		Check the hub with its clusters, placements and add-ons, or the agent of a managed cluster,
		depending on what --context is, and name each problem with its cause and fix. With
		--hub-context, --context is a managed cluster, and its objects on the hub are checked too.
		Nothing is changed. Exit code 3 means that problems were found.`),
		Example: options.Example(`
		kubectl ocm check --context hub
		kubectl ocm check cluster cluster1 --context hub
		kubectl ocm check placement shop/web --context hub
		kubectl ocm check addon metrics --context hub
		kubectl ocm check spoke --context cluster1 --hub-context hub
		kubectl ocm check --explain OCM0304`),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return areas, cobra.ShellCompDirectiveNoFileComp
			}
			if names, ok := completions[args[0]]; ok {
				return names(cmd, args[1:], typed)
			}
			return complete.None(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.AddFlags(flags)
	flags.StringVar(&o.HubContext, "hub-context", "", "context of the hub, when --context is a managed cluster")
	flags.StringVar(&o.FailOn, "fail-on", string(check.SeverityError), "lowest severity that makes the exit code 3: warning or error")
	flags.StringSliceVar(&o.Skip, "skip", nil, "codes of checks to leave out")
	flags.BoolVar(&o.Short, "short", false, "print only what is wrong")
	flags.BoolVar(&o.List, "list", false, "list all checks")
	flags.StringVar(&o.Explain, "explain", "", "explain a code")
	_ = cmd.RegisterFlagCompletionFunc("hub-context", complete.Contexts(f))
	_ = cmd.RegisterFlagCompletionFunc("explain", codes)
	_ = cmd.RegisterFlagCompletionFunc("skip", codes)
	return cmd
}

func codes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, c := range catalogue {
		out = append(out, c.Code+"\t"+c.Title)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// Complete reads the arguments and checks the flags.
func (o *Options) Complete(args []string) error {
	if len(args) > 0 {
		o.Only, o.Names = args[0], args[1:]
	}
	switch {
	case o.Only != "" && !slices.Contains(areas, o.Only):
		return options.Usage(fmt.Sprintf("%q cannot be checked", o.Only), "kubectl ocm check hub, spoke, cluster NAME, placement NAME, or addon NAME")
	case slices.Contains(named, o.Only) && len(o.Names) == 0:
		return options.Usage("the name of the "+o.Only+" is missing", "kubectl ocm check "+o.Only+" NAME")
	case !slices.Contains(named, o.Only) && len(o.Names) > 0:
		return options.Usage(fmt.Sprintf("unexpected argument %q", o.Names[0]), "kubectl ocm check cluster NAME, placement NAME, or addon NAME")
	case o.FailOn != string(check.SeverityWarning) && o.FailOn != string(check.SeverityError):
		return options.Usage(fmt.Sprintf("wrong value %q for --fail-on", o.FailOn), "use warning or error")
	}
	for i, code := range o.Skip {
		o.Skip[i] = strings.ToUpper(code)
		if _, err := findEntry(code); err != nil {
			return err
		}
	}
	if o.Only == onlyPlacement {
		namespace := o.f.Namespace()
		for _, text := range o.Names {
			key, err := placement.ParseName(text, namespace)
			if err != nil {
				return err
			}
			o.placements = append(o.placements, key)
		}
	}
	return o.Format.Check()
}

func findEntry(code string) (entry, error) {
	for _, c := range catalogue {
		if strings.EqualFold(c.Code, code) {
			return c, nil
		}
	}
	return entry{}, options.Usage(fmt.Sprintf("there is no check %q", code), "kubectl ocm check --list")
}

// Run runs the checks and prints their findings.
func (o *Options) Run(ctx context.Context) error {
	switch {
	case o.List:
		return o.printCatalogue()
	case o.Explain != "":
		c, err := findEntry(o.Explain)
		if err != nil {
			return err
		}
		if o.Format.Machine() {
			return o.f.UI.Result(o.Format, "CheckCode", c, []string{c.Code})
		}
		o.f.UI.Say("%s: %s\n%s", c.Code, c.Title, o.f.UI.Own(c.Text))
		return nil
	}
	wanted, err := o.connect(ctx)
	if err != nil {
		return err
	}
	wanted.Clock, wanted.Skip, wanted.ContextOf = o.f.UI.Streams.Clock, o.Skip, o.f.ContextOf
	report, err := check.Run(ctx, wanted)
	if err != nil {
		return err
	}
	if area := o.shadows(); len(area.Findings) > 0 {
		report.Areas = append([]check.Area{area}, report.Areas...)
		report.Warnings += len(area.Findings)
	}
	if err := o.print(report); err != nil {
		return err
	}
	if report.Errors > 0 || (o.FailOn == string(check.SeverityWarning) && report.Warnings > 0) {
		return ui.Exit(ui.ExitFindings)
	}
	return nil
}

// connect opens the clusters to be checked.
func (o *Options) connect(ctx context.Context) (check.Options, error) {
	c, err := o.f.Cluster("")
	if err != nil {
		return check.Options{}, err
	}
	hub, spoke, err := check.Sides(ctx, c)
	if err != nil && o.Only != onlySpoke && o.HubContext == "" {
		return check.Options{}, err
	}
	if o.HubContext != "" {
		spoke = c
		if hub, err = o.f.Cluster(o.HubContext); err != nil {
			return check.Options{}, err
		}
	}
	return o.limit(check.Options{Hub: hub, Spoke: spoke, Placements: o.placements}, c)
}

// limit leaves out what was not asked for; c is the cluster of --context.
func (o *Options) limit(out check.Options, c *fleet.Cluster) (check.Options, error) {
	out.HubOnly, out.PlacementsOnly, out.AddOnsOnly = o.Only == onlyHub, o.Only == onlyPlacement, o.Only == onlyAddOn
	out.ClustersOnly = o.Only == onlyCluster || (o.HubContext != "" && (o.Only == "" || o.Only == onlySpoke))
	switch o.Only {
	case onlyCluster:
		out.Clusters = o.Names
	case onlyAddOn:
		out.AddOns = o.Names
	}
	switch onHub := o.Only == onlyHub || slices.Contains(named, o.Only); {
	case o.Only == onlySpoke && o.HubContext == "":
		out.Hub, out.Spoke = nil, c
	case onHub && out.Hub == nil:
		return out, &fleet.Error{Message: c.String() + " is not a hub", Cause: "an agent runs there, and no hub",
			Fix: fleet.Advice("name the hub's context by --context"), Err: fleet.ErrNotHub}
	case onHub:
		out.Spoke = nil
	}
	return out, nil
}

func (o *Options) printCatalogue() error {
	u := o.f.UI
	if o.Format.Machine() {
		var names []string
		for _, c := range catalogue {
			names = append(names, c.Code)
		}
		return u.Result(o.Format, "CheckCodeList", catalogue, names)
	}
	t := ui.Table{Heads: []string{"CODE", "CHECK"}}
	for _, c := range catalogue {
		t.Rows = append(t.Rows, []string{c.Code, c.Title})
	}
	return u.Report(t, true)
}

// print prints the findings of each area, one per line, with cause and fix below
// each problem.
func (o *Options) print(report check.Report) error {
	u := o.f.UI
	if o.Format.Machine() {
		var names []string
		for _, area := range report.Areas {
			for i, f := range area.Findings {
				if area.Findings[i].Fix = nil; ui.Fix(f.Fix) != "" {
					area.Findings[i].Fix = fleet.Advice(ui.Fix(f.Fix))
				}
				if f.Severity != check.SeverityOK {
					names = append(names, f.Code)
				}
			}
		}
		return u.Result(o.Format, "CheckReport", report, names)
	}
	for _, area := range report.Areas {
		o.printArea(area)
	}
	u.Say("%s: %d ok, %s, %s", ui.Many(report.OK+report.Warnings+report.Errors, "check"), report.OK,
		ui.Many(report.Warnings, "warning"), ui.Many(report.Errors, "error"))
	return nil
}

func (o *Options) printArea(area check.Area) {
	u := o.f.UI
	if o.Short && !slices.ContainsFunc(area.Findings, func(f check.Finding) bool { return f.Severity != check.SeverityOK }) {
		return
	}
	u.Say("%s", area.Name)
	for _, f := range area.Findings {
		switch {
		case f.Severity != check.SeverityOK:
			u.Say("  %s %s %s", u.Mark(states[f.Severity]), f.Code, f.Title)
		case !o.Short:
			u.Say("  %s %s", u.Mark(fleet.Done), f.Title)
		}
		if f.Cause != "" {
			u.Say("      cause: %s", f.Cause)
		}
		if fix := ui.Fix(f.Fix); fix != "" {
			u.Say("      fix:   %s", u.Own(fix))
		}
	}
}

// states maps a severity to the state that has its mark.
var states = map[check.Severity]fleet.StepState{check.SeverityError: fleet.Broken, check.SeverityWarning: fleet.Warned}
