// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
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
	onlyWork      = "work"
)

// The values of --pre: what is to be installed.
const preHub, preJoin = "hub", "join"

// The formats that only check has: short prints only what is wrong, sarif is for code scanners.
const (
	short ui.Format = "short"
	sarif ui.Format = "sarif"
)

// areas are all values of the first argument; those in named are followed by names.
var (
	areas = []string{onlyHub, onlySpoke, onlyCluster, onlyPlacement, onlyWork, onlyAddOn}
	named = []string{onlyCluster, onlyPlacement, onlyWork, onlyAddOn}
)

// Options are the flags of check.
type Options struct {
	options.Output
	options.Files
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
	// Pre checks before an installation: preHub or preJoin.
	Pre string
	// EndToEnd sends a canary to each available cluster.
	EndToEnd bool
	// Bundle is the file of a support bundle to write; empty writes none.
	Bundle string
	// Wait repeats the check for this long at most; 0 checks once.
	Wait time.Duration
	// Short prints only what is wrong.
	Short bool
	// List prints the catalogue, Explain one entry of it.
	List    bool
	Explain string

	f          *options.Factory
	placements []types.NamespacedName
	works      []types.NamespacedName
}

// New returns the command "check".
func New(f *options.Factory) *cobra.Command {
	o := &Options{f: f}
	completions := map[string]complete.Func{onlyPlacement: complete.Placements(f), onlyAddOn: complete.AddOns(f), onlyCluster: complete.Clusters(f),
		onlyWork: complete.PlacedWorks(f)}
	cmd := &cobra.Command{
		Use:     "check [hub|spoke|cluster NAME...|placement NAME...|work CLUSTER/NAME...|addon NAME...]",
		Aliases: []string{"doctor"}, Short: "Find what keeps the fleet from working, and how to fix it",
		Long: options.Long(`
		Check the hub with its clusters, placements and add-ons, or the agent of a managed cluster,
		depending on what --context is, and name each problem with its cause and fix. With
		--hub-context, --context is a managed cluster, and its objects on the hub are checked too.
		With -f, judge manifests before they are sent: objects of the hub's kinds by the hub itself, and
		by whether they would work there, all others as a work that carries them. With --pre, name what would keep a hub from being
		installed on --context, or a cluster from joining. With --wait, repeat the check until nothing
		is left. Nothing is changed, except by --e2e: it creates a work with one ConfigMap on each
		available cluster, waits until the agent has applied and reported it, and deletes it again,
		for which you need the right to create and delete works. --bundle also writes versions,
		objects of Open Cluster Management, their conditions, what runs them, events and the findings
		into an archive, without any secret. Exit code 3 means that problems were found, 4 that the time was
		over before they were gone.`),
		Example: options.Example(`
		kubectl ocm check --context hub
		kubectl ocm check cluster cluster1 --context hub
		kubectl ocm check placement shop/web --context hub
		kubectl ocm check work cluster1/web --context hub
		kubectl ocm check addon metrics --context hub
		kubectl ocm check spoke --context cluster1 --hub-context hub
		kubectl ocm check -f app/ --context hub
		kubectl ocm check --pre hub --context hub
		kubectl ocm check --pre join --context cluster1 --hub-context hub
		kubectl ocm check cluster cluster1 --e2e --context hub
		kubectl ocm check --bundle support.tgz --context hub
		kubectl ocm check --wait 2m --fail-on warning --context hub
		kubectl ocm check --explain OCM0304
		kubectl ocm check --context hub -o sarif --fail-on warning > findings.sarif`),
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
	o.addFlags(cmd)
	return cmd
}

// addFlags adds the flags.
func (o *Options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.Output.AddFlags(flags)
	o.Files.AddFlags(flags)
	flags.Lookup("filename").Usage = "judge these manifests instead, before they are sent: " + flags.Lookup("filename").Usage
	flags.StringVar(&o.HubContext, "hub-context", "", "context of the hub, when --context is a managed cluster")
	flags.StringVar(&o.FailOn, "fail-on", string(check.SeverityError), "lowest severity that makes the exit code 3: warning or error")
	flags.StringVar(&o.Pre, "pre", "", "check before an installation: hub, or join for a managed cluster")
	flags.BoolVar(&o.EndToEnd, "e2e", false, "also send a work with one ConfigMap to each available cluster, and delete it when it was reported back")
	flags.StringVar(&o.Bundle, "bundle", "", "also write what support needs to this new .tgz file, without secrets")
	options.DurationVar(flags, &o.Wait, "wait", 0, "repeat until nothing at or above --fail-on is left, for this long at most")
	flags.StringSliceVar(&o.Skip, "skip", nil, "codes of checks to leave out")
	flags.Lookup("output").Usage += ", short: only what is wrong, sarif: for code scanners"
	flags.BoolVar(&o.Short, "short", false, "the same as -o short")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml", "name", "wide", "jsonpath=", "go-template=",
		string(short), string(sarif)}, cobra.ShellCompDirectiveNoFileComp))
	flags.BoolVar(&o.List, "list", false, "list all checks")
	flags.StringVar(&o.Explain, "explain", "", "explain a code")
	options.Apart(flags, "short", "output")
	options.Apart(flags, "list", "explain")
	for _, printed := range []string{"list", "explain"} { // they check nothing
		options.Apart(flags, printed, "filename", "kustomize", "pre", "e2e", "bundle", "wait", "fail-on", "skip", "hub-context")
	}
	_ = cmd.RegisterFlagCompletionFunc("hub-context", complete.Contexts(o.f))
	_ = cmd.RegisterFlagCompletionFunc("explain", codes)
	_ = cmd.RegisterFlagCompletionFunc("skip", codes)
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
		return options.Usage(fmt.Sprintf("%q cannot be checked", o.Only),
			"kubectl ocm check hub, spoke, cluster NAME, placement NAME, work CLUSTER/NAME, or addon NAME")
	case slices.Contains(named, o.Only) && len(o.Names) == 0:
		return options.Usage("the name of the "+o.Only+" is missing", "kubectl ocm check "+o.Only+" NAME")
	case !slices.Contains(named, o.Only) && len(o.Names) > 0:
		return options.Usage(fmt.Sprintf("unexpected argument %q", o.Names[0]), "kubectl ocm check cluster NAME, placement NAME, work CLUSTER/NAME, or addon NAME")
	case o.FailOn != string(check.SeverityWarning) && o.FailOn != string(check.SeverityError):
		return options.Usage(fmt.Sprintf("wrong value %q for --fail-on", o.FailOn), "use warning or error")
	}
	if err := cmp.Or(o.checkFlags(), o.checkPre()); err != nil {
		return err
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
	if err := o.readWorks(); err != nil {
		return err
	}
	return o.checkFormat()
}

// readWorks reads the names of works, each with its cluster.
func (o *Options) readWorks() error {
	if o.Only != onlyWork {
		return nil
	}
	for _, text := range o.Names {
		in, name, both := strings.Cut(text, "/")
		if !both || name == "" || strings.Contains(name, "/") {
			return options.Usage(fmt.Sprintf("%q does not name a work and its cluster", text), "kubectl ocm check work CLUSTER/NAME")
		}
		if err := naming.Check(in); err != nil {
			return err
		}
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return options.Usage(fmt.Sprintf("%q cannot be the name of a work", name), "name it in lower-case letters, digits and '-'")
		}
		o.works = append(o.works, types.NamespacedName{Namespace: in, Name: name})
	}
	return nil
}

// checkFlags checks -f and --skip.
func (o *Options) checkFlags() error {
	given, err := o.Given()
	if err != nil {
		return err
	}
	for _, other := range []struct {
		name  string
		given bool
	}{{o.Only, o.Only != ""}, {"--pre", o.Pre != ""}, {"--wait", o.Wait > 0}, {"--e2e", o.EndToEnd}, {"--bundle", o.Bundle != ""}} {
		if given && other.given {
			return options.Usage("-f judges manifests", "leave "+other.name+" out")
		}
	}
	for i, code := range o.Skip {
		o.Skip[i] = strings.ToUpper(code)
		if _, err := findEntry("--skip", code); err != nil {
			return err
		}
	}
	return nil
}

// checkPre checks --pre and --wait.
func (o *Options) checkPre() error {
	if o.Wait < 0 {
		return options.Usage("--wait must be longer than 0", "for example --wait 2m")
	}
	if o.Pre == "" && !o.EndToEnd {
		return nil
	}
	switch {
	case o.EndToEnd && (o.Wait > 0 || o.Pre != "" || !slices.Contains([]string{"", onlyCluster, onlySpoke}, o.Only)):
		return options.Usage("--e2e sends canaries to clusters, once", "use it with cluster NAME, or alone")
	case o.Pre == "":
		return nil
	case o.Bundle != "":
		return options.Usage("--bundle shows what is installed", "leave --pre out")
	case o.Pre != preHub && o.Pre != preJoin:
		return options.Usage(fmt.Sprintf("wrong value %q for --pre", o.Pre), "use hub or join")
	case o.Only != "":
		return options.Usage("--pre checks what is not installed yet", "leave "+o.Only+" out")
	case o.Pre == preHub && o.HubContext != "":
		return options.Usage("--pre hub checks --context", "leave --hub-context out")
	}
	return nil
}

// checkFormat accepts the formats of every command, and those of check.
func (o *Options) checkFormat() error {
	switch o.Format {
	case short:
		o.Short, o.Format = true, ui.Text
	case sarif:
		if o.List || o.Explain != "" {
			return options.Usage("-o sarif prints what was found", "leave --list and --explain out")
		}
		return nil
	}
	return o.Format.Check()
}

// findEntry returns the entry of the catalogue that a flag names by its code.
func findEntry(flag, code string) (entry, error) {
	for _, c := range catalogue {
		if strings.EqualFold(c.Code, code) {
			return c, nil
		}
	}
	return entry{}, options.Usage(fmt.Sprintf("there is no check %q for %s", code, flag), "kubectl ocm check --list")
}

// Run runs the checks and prints their findings.
func (o *Options) Run(ctx context.Context) error {
	switch {
	case o.List:
		return o.printCatalogue()
	case o.Explain != "":
		c, err := findEntry("--explain", o.Explain)
		if err != nil {
			return err
		}
		if o.Format.Machine() {
			value := struct {
				entry
				Seen string `json:"seen"`
				Fix  string `json:"fix"`
			}{c, c.seen(), o.f.UI.Own(c.fix())}
			return o.f.UI.Result(o.Format, "CheckCode", value, []string{c.Code})
		}
		o.f.UI.Say("%s: %s\n%s\n  seen: %s\n  fix:  %s", c.Code, c.Title, o.f.UI.Own(c.Text), c.seen(), o.f.UI.Own(c.fix()))
		return nil
	}
	file, err := o.createBundle()
	if err != nil {
		return err
	}
	report, err := o.wait(ctx)
	err = cmp.Or(err, o.writeBundle(ctx, file, report))
	if err != nil && len(report.Areas) == 0 || errors.Is(err, context.Canceled) {
		return err
	}
	if err := cmp.Or(o.print(report), err); err != nil {
		return err
	}
	if report.Fails(check.Severity(o.FailOn)) {
		return ui.Exit(ui.ExitFindings)
	}
	return nil
}

// wait runs the checks once, or with --wait until nothing is left.
func (o *Options) wait(ctx context.Context) (check.Report, error) {
	if o.Wait == 0 {
		return o.look(ctx)
	}
	for _, name := range []string{"", o.HubContext} {
		if _, err := o.f.Cluster(name); err != nil {
			return check.Report{}, err // no time makes a context exist
		}
	}
	p := o.f.UI.Progress()
	defer p.Close()
	return check.Await(ctx, fleet.Common{Clock: o.f.UI.Streams.Clock, Timeout: o.Wait, Progress: p.Step}, check.Severity(o.FailOn), o.look)
}

// look runs the checks, those of this machine included.
func (o *Options) look(ctx context.Context) (check.Report, error) {
	var here check.Report
	if area := o.machine(ctx); len(area.Findings) > 0 {
		here.Areas = []check.Area{area}
		for _, f := range area.Findings {
			if f.Severity == check.SeverityError {
				here.Errors++
			} else {
				here.Warnings++
			}
		}
	}
	if here.Errors > 0 {
		return here, nil // a cluster cannot be opened
	}
	report, err := o.lookAtClusters(ctx)
	if err != nil {
		return report, err
	}
	here.Add(report)
	return here, nil
}

func (o *Options) lookAtClusters(ctx context.Context) (check.Report, error) {
	if given, _ := o.Given(); given {
		sources, err := o.Sources(o.f.UI)
		if err != nil {
			return check.Report{}, err
		}
		hub, err := o.f.Cluster("")
		if err != nil {
			return check.Report{}, err
		}
		wanted := check.Options{Common: fleet.Common{Clock: o.f.UI.Streams.Clock}, Hub: hub, Skip: o.Skip}
		return check.Files(ctx, wanted, sources, o.f.Namespace()), fleet.NeedHub(ctx, hub)
	}
	if o.Pre != "" {
		return o.lookBefore(ctx)
	}
	wanted, err := o.connect(ctx)
	if err != nil {
		return check.Report{}, err
	}
	wanted.Clock, wanted.Skip, wanted.ContextOf, wanted.Version = o.f.UI.Streams.Clock, o.Skip, o.f.ContextOf, version.Get()
	report, err := check.Run(ctx, wanted)
	if !o.EndToEnd || err != nil {
		return report, err
	}
	p := o.f.UI.Progress()
	defer p.Close()
	wanted.Progress = p.Step
	flown, err := check.EndToEnd(ctx, wanted)
	report.Add(flown)
	return report, err
}

// lookBefore checks what is not installed yet.
func (o *Options) lookBefore(ctx context.Context) (check.Report, error) {
	c, err := o.f.Cluster("")
	if err != nil {
		return check.Report{}, err
	}
	wanted := check.Options{Common: fleet.Common{Clock: o.f.UI.Streams.Clock}, Hub: c, Skip: o.Skip, ContextOf: o.f.ContextOf}
	if o.Pre == preJoin {
		wanted.Spoke, wanted.Hub = c, nil
	}
	if o.HubContext != "" {
		if wanted.Hub, err = o.f.Cluster(o.HubContext); err != nil {
			return check.Report{}, err
		}
	}
	return check.Before(ctx, wanted), ctx.Err()
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
	return o.limit(check.Options{Hub: hub, Spoke: spoke, Placements: o.placements, Works: o.works}, c)
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
	case o.EndToEnd && out.Hub == nil:
		return out, options.Usage("--e2e sends canaries from a hub", "name the hub's context by --context or --hub-context")
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
