// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// ApplyOptions are the flags of work apply.
type ApplyOptions struct {
	options.Change
	options.Targets
	options.Files
	// Wanted is what to send, and to which clusters.
	Wanted work.Options
	// Deletion is foreground or orphan.
	Deletion string
	// Overwrite is a flag of clusteradm without effect here.
	Overwrite bool
	// SpokeContext is the context of the only target cluster.
	SpokeContext string
	// Live compares with the objects on the clusters.
	Live bool

	f *options.Factory
}

func newApply(f *options.Factory) *cobra.Command {
	o := &ApplyOptions{f: f}
	cmd := o.command(&cobra.Command{
		Use: "apply NAME {-f FILE | -k FOLDER}", Short: "Send objects to managed clusters, or update them",
		Long: options.Long(`
		Put the objects in files into a ManifestWork NAME for each of the clusters. The same
		command creates and updates: objects and settings of earlier runs that are not given again
		are removed from the work. The objects are checked before anything is sent.

		With --prune, works that this command sent are also deleted from clusters that are no
		longer targets. With --executor, the objects are applied with the rights of a
		ServiceAccount of the cluster; --spoke-context first checks on that cluster that the
		account has them.

		With --placement alone, the hub keeps the work on the clusters that the placement selects,
		now and later, through a ManifestWorkReplicaSet of the same name in the placement's
		namespace. On a hub without that feature, each cluster that is selected now gets a work.`),
		Example: options.Example(`
		kubectl ocm work apply web -f web.yaml -c cluster1,cluster2 --context hub
		kubectl ocm work apply web -f manifests/ -l env=prod --wait
		kubectl ocm work apply web -k overlays/prod -l env=prod --prune
		kubectl ocm work apply web -f web.yaml --placement apps/everywhere --rollout progressive --max-concurrency 25%`),
	}, options.Parts{Diff: true, Wait: true, Yes: true}, "context of the only target cluster, to check that the executor has the rights")
	cmd.Flags().BoolVar(&o.Wanted.Prune, "prune", false, "also delete works that this command sent from clusters that are no longer targets")
	return cmd
}

// newDiff returns the command "work diff": apply that only compares.
func newDiff(f *options.Factory) *cobra.Command {
	o := &ApplyOptions{f: f}
	o.Diff = true
	cmd := o.command(&cobra.Command{
		Use: "diff NAME [-f FILE | -k FOLDER]", Short: "Show what work apply would change, or what differs on the clusters",
		Long: options.Long(`
		Compare the objects in files with the work NAME of each of the clusters. The exit code is
		0 if nothing differs, 1 if something does, and 2 on errors.

		With --live, compare what the work wants with what the agents report from the clusters:
		whether each object is applied and available, and the values that feedback rules read
		back. With --spoke-context, for one cluster, compare the objects on that cluster with
		what the agent's next write would make of them. Without -f or -k, the objects are those
		of the existing work.`),
		Example: options.Example(`
		kubectl ocm work diff web -f web.yaml -l env=prod --context hub
		kubectl ocm work diff web --live --all --context hub
		kubectl ocm work diff web --live -c cluster1 --context hub --spoke-context cluster1`),
	}, options.Parts{Compares: true}, "with --live, context of the only target cluster, to compare the objects there")
	cmd.Flags().BoolVar(&o.Live, "live", false, "compare with what is on the clusters, not with what the hub has")
	return cmd
}

// command adds to cmd what work apply and work diff share; spoke describes --spoke-context.
func (o *ApplyOptions) command(cmd *cobra.Command, parts options.Parts, spoke string) *cobra.Command {
	cmd.Args = options.Args(1, 1, "the name of the work")
	cmd.ValidArgsFunction = complete.Works(o.f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Wanted.Name = args[0]
		if err := o.Validate(); err != nil {
			return err
		}
		return o.Diffed(o.Run(cmd.Context()))
	}
	flags := cmd.Flags()
	o.Change.AddFlags(flags, parts)
	o.Targets.AddFlags(cmd, complete.Targets(o.f))
	o.Files.AddFlags(flags)
	flags.StringVar(&o.Deletion, "delete-option", "foreground", "what happens to the objects when the work is deleted: foreground or orphan")
	flags.StringVar(&o.Wanted.UpdateStrategy, "update-strategy", "", "how existing objects are updated: "+strings.Join(work.UpdateStrategies(), ", "))
	flags.StringArrayVar(&o.Wanted.Feedback, "feedback", nil, "a value to read back from the objects, NAME=JSONPATH; may be repeated")
	flags.StringVar(&o.Wanted.Rollout, "rollout", "", "with --placement, how changes roll out to the clusters: all, progressive, per-group")
	flags.StringVar(&o.Wanted.MaxConcurrency, "max-concurrency", "", "how many clusters a progressive rollout changes at a time: a number or a percentage")
	flags.StringVar(&o.Wanted.Executor, "executor", "", "ServiceAccount of the cluster that applies the objects, NAMESPACE/NAME")
	flags.BoolVar(&o.Wanted.Force, "force", false, "also write works that belong to a replica set or an add-on")
	flags.BoolVar(&o.Overwrite, "overwrite", false, "no effect: apply creates and updates")
	flags.Lookup("overwrite").Hidden = true
	flags.StringVar(&o.SpokeContext, "spoke-context", "", spoke)
	_ = cmd.RegisterFlagCompletionFunc("spoke-context", complete.Contexts(o.f))
	return cmd
}

// liveCommand returns the command that compares the existing work with the clusters, which
// needs no file.
func (o *ApplyOptions) liveCommand() string {
	line := "kubectl ocm work diff " + ui.ShellWord(o.Wanted.Name) + " --live"
	for _, target := range []struct{ flag, value string }{
		{"-c", strings.Join(o.Targets.Clusters, ",")}, {"-l", o.Targets.Selector}, {"--clusterset", o.Targets.Set}, {"--placement", o.Targets.Placement},
	} {
		if target.value != "" {
			line += " " + target.flag + " " + ui.ShellWord(target.value)
		}
	}
	if o.Targets.All || o.Targets.Empty() {
		line += " --all"
	}
	return line + o.f.GivenContext()
}

// Validate checks the flags.
func (o *ApplyOptions) Validate() error {
	given, err := o.Given()
	switch {
	case err != nil:
		return err
	case !given && o.Diff && !o.Live:
		return options.Usage("there is nothing to compare with: -f is missing", o.liveCommand())
	case !given && !o.Live:
		return options.Usage("there are no manifests: -f is missing", "kubectl ocm work apply NAME -f FILE -c CLUSTER")
	case o.SpokeContext != "" && o.Wanted.Executor == "" && !o.Live:
		return options.Usage("--spoke-context is not needed", "it is for --executor of work apply and --live of work diff")
	case o.Deletion != "foreground" && o.Deletion != "orphan":
		return options.Usage(fmt.Sprintf("wrong value %q for --delete-option", o.Deletion), "use foreground or orphan")
	}
	if o.Overwrite {
		o.f.UI.Note("--overwrite has no effect: apply creates and updates; use --dry-run or work diff to check first")
	}
	return o.CheckAll(&o.Change, o.f.UI)
}
