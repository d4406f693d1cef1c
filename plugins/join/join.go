// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/gate"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/join"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Options are the flags of join.
type Options struct {
	options.Change
	options.Release
	// Name of the cluster on the hub.
	Name string
	// Alias is the name given with --cluster-name.
	Alias string
	// HubContext is the context of the hub.
	HubContext string
	// Server, Token, TokenFile, Bundle, CAFile and CAHash describe a hub without a
	// context.
	Server, Token, TokenFile, Bundle, CAFile, CAHash string
	// Internal uses the address that the hub publishes.
	Internal bool
	// ProxyURL and ProxyCAFile describe a forward proxy.
	ProxyURL, ProxyCAFile string
	// Accept accepts the cluster at once.
	Accept bool
	// Labels and Annotations of the ManagedCluster.
	Labels, Annotations map[string]string
	// ClusterSet is the set that the cluster joins.
	ClusterSet string
	// Gates are feature gates.
	Gates options.Gates
	// Rights of the agent: default or narrow.
	Rights string
	// Mode says where the agent runs, and Singleton that it is one process.
	Mode      string
	Singleton bool
	// ManagedKubeconfig is the file that leads to the cluster that joins with a hosted agent.
	ManagedKubeconfig string
	// Klusterlet is the name of the klusterlet.
	Klusterlet string
	// Layout is compact or split; empty keeps it.
	Layout string
	// Rejoin moves the cluster from the hub or name that it has joined.
	Rejoin bool
	// Adopt takes the cluster over from another distribution, and Plan shows what that changes.
	Adopt, Plan bool
	// Upgrade moves the agent to another release, and changes nothing else.
	Upgrade bool
	// BackOut gives an adopted cluster back to the operator that ran its agent before.
	BackOut bool
	// Replace takes a name whose agent still reports.
	Replace bool

	f *options.Factory
}

// New returns the command "join".
func New(f *options.Factory) *cobra.Command {
	o := &Options{f: f}
	cmd := &cobra.Command{
		Use:   "join NAME",
		Short: "Join a cluster to the hub",
		Long: options.Long(`
		Install the agent on the cluster of --context and register it on the hub under NAME.

		If you have a context of the hub, nothing has to be copied. Otherwise give the address and
		token that "kubectl ocm hub token" prints. Everything that can be checked is checked before
		anything is written, and the command can be repeated.

		With --mode hosted, the agent runs on the cluster of --context and manages the one to which
		--managed-cluster-kubeconfig leads. An operator is installed there unless there is one.

		With --layout, an agent on its own cluster changes its layout in place: its certificate and what
		works applied stay.

		With --upgrade, the agent that the cluster has moves to the release of this program, or of
		--version, and keeps everything else. With --back-out, a cluster that --adopt took over goes back
		to the operator that ran its agent before. Both need neither the hub nor NAME.`),
		Example: options.Example(`
		kubectl ocm join cluster1 --context spoke --hub-context hub --accept
		kubectl ocm join cluster1 --context spoke --hub-apiserver https://hub:6443 --token-file token --hub-ca-hash sha256:...
		kubectl ocm join edge --context hosting --hub-context hub --accept --mode hosted --managed-cluster-kubeconfig edge.kubeconfig
		kubectl ocm join --upgrade --context spoke`),
		Args: options.Args(0, 1, "the name of the cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
		ValidArgsFunction: complete.None,
	}
	o.Change.AddFlags(cmd.Flags(), options.Parts{Diff: true, Wait: true, WaitDefault: true})
	o.Release.AddFlags(cmd.Flags())
	o.Gates.AddFlags(cmd.Flags())
	o.hubFlags(cmd.Flags())
	o.clusterFlags(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("hub-context", complete.Contexts(f))
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(slices.Sorted(maps.Keys(modes)), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *Options) hubFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.HubContext, "hub-context", "", "context of the hub, from which token, address and CA are taken")
	flags.StringVar(&o.Server, "hub-apiserver", "", "address of the hub's API server")
	flags.StringVar(&o.Token, "hub-token", "", "join token; --token-file keeps it out of the process list")
	flags.StringVar(&o.TokenFile, "token-file", "", "file with the join token, - for standard input")
	flags.StringVar(&o.Bundle, "bundle", "", "file with the output of hub token --print bundle, - for standard input")
	flags.StringVar(&o.CAFile, "ca-file", "", "file with the hub's CA (PEM)")
	flags.StringVar(&o.CAHash, "hub-ca-hash", "", "hash of the hub's CA, as hub token prints it")
	flags.BoolVar(&o.Internal, "internal-endpoint", false, "use the hub's address as published in kube-public/cluster-info")
	flags.StringVar(&o.ProxyURL, "proxy-url", "", "forward proxy between agent and hub")
	flags.StringVar(&o.ProxyCAFile, "proxy-ca-file", "", "file with the proxy's CA (PEM)")
	options.Hidden(flags, "force-internal-endpoint-lookup", "internal-endpoint")
	options.Apart(flags, "internal-endpoint", "hub-apiserver")
}

func (o *Options) clusterFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Accept, "accept", false, "accept the cluster at once; needs --hub-context")
	flags.StringToStringVar(&o.Labels, "labels", nil, "labels of the managed cluster; needs --hub-context")
	flags.StringVar(&o.ClusterSet, "clusterset", "", "cluster set to join; needs --hub-context")
	flags.StringToStringVar(&o.Annotations, "annotations", nil, "annotations of the managed cluster, with the prefix agent.open-cluster-management.io/")
	flags.StringVar(&o.Rights, "agent-rights", "default", "rights of the agent on its cluster: default or narrow")
	flags.BoolVar(&o.Rejoin, "rejoin", false, "move the cluster from the hub or name that it has now")
	flags.BoolVar(&o.Adopt, "adopt", false, "take the cluster over from the agent of another distribution")
	flags.BoolVar(&o.Plan, "plan", false, "with --adopt or --back-out: show what happens to each object, and change nothing")
	flags.BoolVar(&o.BackOut, "back-out", false, "give an adopted cluster back to the operator that ran its agent before")
	flags.BoolVar(&o.Upgrade, "upgrade", false, "move the agent that the cluster has to another release, and change nothing else")
	flags.BoolVar(&o.Replace, "replace", false, "take the name from an agent that still reports")
	flags.StringVar(&o.Klusterlet, "klusterlet", operatorv1.DefaultKlusterletName, "name of the klusterlet; another name adds an agent for a further hub")
	flags.StringVar(&o.Layout, "layout", "", "compact: one process, or split: an operator that runs the agent in Deployments; "+
		"without the flag it stays as it is, at first compact")
	flags.StringVar(&o.Alias, "cluster-name", "", "the name of the cluster")
	flags.StringToStringVar(&o.Annotations, "klusterlet-annotation", nil, "annotations of the managed cluster")
	flags.StringVarP(&o.Mode, "mode", "m", "default",
		"where the agent runs: on the cluster that joins (default, singleton) or elsewhere (hosted, singletonhosted)")
	flags.StringVar(&o.ManagedKubeconfig, "managed-cluster-kubeconfig", "",
		"file with an administrator's kubeconfig of the cluster that joins; needs --mode hosted")
	flags.BoolVar(&o.Singleton, "singleton", false, "one agent process: with --mode hosted, the same as --mode singletonhosted")
	for _, name := range []string{"cluster-name", "klusterlet-annotation", "singleton"} {
		flags.Lookup(name).Hidden = true
	}
}

// Complete takes the name from the arguments or from --cluster-name.
func (o *Options) Complete(args []string) error {
	if len(args) == 1 {
		o.Name = args[0]
	}
	switch {
	case o.Name != "" && o.Alias != "" && o.Name != o.Alias:
		return options.Usage(fmt.Sprintf("two names are given: %q and %q", o.Name, o.Alias), "leave --cluster-name out")
	case o.Name == "":
		o.Name = o.Alias
	}
	if o.Name == "" && !o.Upgrade && !o.BackOut {
		return options.Usage("the name of the cluster is missing", "kubectl ocm join NAME --context <its context> --hub-context <the hub's context>")
	}
	return nil
}

// Validate checks the flags.
func (o *Options) Validate() error {
	if o.Upgrade || o.BackOut {
		return o.validateUpgrade()
	}
	return o.validateJoin()
}

func (o *Options) validateJoin() error {
	if err := cmp.Or(naming.Check(o.Name), member.CheckKlusterlet(o.Klusterlet)); err != nil {
		return err
	}
	given := 0
	for _, v := range []string{o.Token, o.TokenFile, o.Bundle} {
		if v != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return options.Usage("more than one token is given", "use one of --hub-token, --token-file, --bundle")
	case o.HubContext != "" && given > 0:
		return options.Usage("--hub-context and a token are given", "leave the token out: one is created on the hub")
	case o.ClusterSet != "" && o.HubContext == "":
		return options.Usage("--clusterset needs --hub-context", "a join token may only join the set default")
	case o.Plan && !o.Adopt:
		return options.Usage("--plan needs --adopt", "use --dry-run or --diff to see what join would change")
	case o.Rights != "default" && o.Rights != "narrow":
		return options.Usage(fmt.Sprintf("wrong value %q for --agent-rights", o.Rights), "use default or narrow")
	}
	return cmp.Or(o.checkMode(), o.checkLayout(), gate.Check(o.Gates, gate.Agent), o.Release.Check(), o.Change.Check(o.f.UI))
}

// modes are the values of --mode. The agent on the cluster that joins is one process in either
// mode, unless an operator there runs it.
var modes = map[string]operatorv1.InstallMode{
	"default": "", "singleton": operatorv1.InstallModeSingleton,
	"hosted": operatorv1.InstallModeHosted, "singletonhosted": operatorv1.InstallModeSingletonHosted,
}

// mode returns the mode of the Klusterlet.
func (o *Options) mode() operatorv1.InstallMode {
	switch mode := modes[strings.ToLower(o.Mode)]; {
	case o.Singleton && mode.IsHosted():
		return operatorv1.InstallModeSingletonHosted
	case o.Singleton:
		return operatorv1.InstallModeSingleton
	default:
		return mode
	}
}

func (o *Options) checkMode() error {
	_, known := modes[strings.ToLower(o.Mode)]
	switch hosted := o.mode().IsHosted(); {
	case !known:
		return options.Usage(fmt.Sprintf("wrong value %q for --mode", o.Mode), "use "+strings.Join(slices.Sorted(maps.Keys(modes)), ", "))
	case hosted && o.ManagedKubeconfig == "":
		return options.Usage("--mode "+o.Mode+" needs --managed-cluster-kubeconfig", "name the file with a kubeconfig of the cluster that joins")
	case !hosted && o.ManagedKubeconfig != "":
		return options.Usage("--managed-cluster-kubeconfig needs --mode hosted", "add --mode hosted, or leave the file out to join the cluster of --context")
	case hosted && (o.Adopt || o.Rights == "narrow"):
		return options.Usage("--mode "+o.Mode+" does not go with --adopt or --agent-rights narrow", "leave these out")
	}
	return nil
}

func (o *Options) checkLayout() error {
	switch {
	case o.Layout == join.LayoutCompact && o.mode().IsHosted():
		return options.Usage("--mode "+o.Mode+" has no compact layout", "use --mode singletonhosted for one process")
	case o.Layout == join.LayoutSplit && o.Adopt:
		return options.Usage("--adopt ends in the compact layout", "leave --layout out, and join with --layout split afterwards")
	case o.Layout == join.LayoutSplit && o.Rights == "narrow":
		return options.Usage("--layout split does not go with --agent-rights narrow", "leave one of them out")
	}
	return nil
}

// Run joins the cluster and prints the state it reached.
func (o *Options) Run(ctx context.Context) error {
	u := o.f.UI
	spoke, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	if o.mode().IsHosted() {
		u.Note("hosting cluster: %s", spoke)
	} else {
		u.Note("cluster: %s", spoke)
	}
	switch {
	case o.Upgrade:
		return o.upgrade(ctx, spoke)
	case o.BackOut:
		return o.backOut(ctx, spoke)
	}
	wanted, err := o.joinOptions(spoke)
	if err != nil {
		return err
	}
	p := u.Progress()
	wanted.Common = o.Common(u, p.Step)
	if o.Plan && !wanted.Reads() {
		wanted.DryRun = fleet.DryRunClient
	}
	result, err := join.Run(ctx, *wanted)
	p.Close()
	if err != nil {
		return o.Diffed(err)
	}
	if o.Plan {
		return o.Output.Plan(u, "AdoptionPlan", map[string]any{"cluster": result.Cluster, "hub": result.Hub, "items": result.Plan}, result.Plan)
	}
	if done, err := o.Preview(u, "JoinResult", result, result.Items); done || err != nil {
		return err
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "JoinResult", result, []string{"managedcluster.cluster.open-cluster-management.io/" + result.Cluster})
	}
	o.print(u, wanted.Hub, result)
	return o.Objects(u, result.Items)
}

// joinOptions returns the options of the library: it reads the files and opens the hub.
func (o *Options) joinOptions(spoke *fleet.Cluster) (*join.Options, error) {
	_, image := o.Images(version.Get())
	out := &join.Options{Name: o.Name, Spoke: spoke, Mode: o.mode(), Layout: o.Layout, Klusterlet: o.Klusterlet,
		Server: o.Server, CAHash: o.CAHash, Internal: o.Internal, ProxyURL: o.ProxyURL,
		Accept: o.Accept, Annotations: o.Annotations, Image: image, Version: o.VersionOr(version.Get()), FeatureGates: o.Gates,
		NarrowRights: o.Rights == "narrow", Rejoin: o.Rejoin, Replace: o.Replace, Adopt: o.Adopt, Labels: map[string]string{}}
	for k, v := range o.Labels {
		out.Labels[k] = v
	}
	if o.ClusterSet != "" {
		out.Labels["cluster.open-cluster-management.io/clusterset"] = o.ClusterSet
	}
	if o.HubContext != "" {
		var err error
		if out.Hub, err = o.f.Cluster(o.HubContext); err != nil {
			return nil, err
		}
		if out.Hub.Server() == spoke.Server() && out.Hub.Context != spoke.Context && !out.Mode.IsHosted() {
			o.f.UI.Warn("%s and %s are the same API server: the hub joins itself", out.Hub.Context, spoke.Context)
		}
	}
	return out, o.readFiles(out)
}

func (o *Options) print(u *ui.UI, hub *fleet.Cluster, r join.Result) {
	where := r.Hub
	if hub != nil && hub.Context != "" {
		where = "hub " + hub.Context
	}
	switch r.State {
	case join.Available:
		u.Say("%s joined %s (%s)", r.Cluster, where, r.Action)
	case join.Accepted:
		u.Say("%s is accepted by %s (%s)", r.Cluster, where, r.Action)
	case join.Requested:
		u.Say("%s asked %s to be accepted (%s)", r.Cluster, where, r.Action)
	default:
		u.Say("%s: agent installed for %s (%s)", r.Cluster, where, r.Action)
	}
	if r.State == join.Requested || r.State == join.Installed {
		context := "<the hub's context>"
		if hub != nil && hub.Context != "" {
			context = hub.Context
		}
		u.Next(fmt.Sprintf("kubectl ocm accept %s --context %s", r.Cluster, context))
	}
}
