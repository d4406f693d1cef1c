// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	// Name of the work.
	Name string
	// Deletion is foreground or orphan.
	Deletion string
	// Force also writes works that belong to a replica set or an add-on.
	Force bool
	// Overwrite is a flag of clusteradm without effect here.
	Overwrite bool
	// UpdateStrategy and Feedback apply to all objects.
	UpdateStrategy string
	Feedback       []string
	// Prune also deletes the work from clusters that are no longer targets.
	Prune bool
	// Executor is the ServiceAccount that applies the objects, NAMESPACE/NAME.
	Executor string
	// SpokeContext is the context of the only target cluster.
	SpokeContext string
	// Live compares with the objects on the clusters.
	Live bool
	// Rollout and MaxConcurrency are the rollout strategy of a placement.
	Rollout, MaxConcurrency string

	f         *options.Factory
	manifests []*unstructured.Unstructured
}

func newApply(f *options.Factory) *cobra.Command {
	o := &ApplyOptions{f: f}
	cmd := &cobra.Command{
		Use:   "apply NAME {-f FILE | -k FOLDER}",
		Short: "Send objects to managed clusters, or update them",
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
		Args:              options.Args(1, 1, "the name of the work"),
		ValidArgsFunction: complete.Works(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.addFlags(cmd, options.Parts{Diff: true, Wait: true, Yes: true})
	flags := cmd.Flags()
	flags.BoolVar(&o.Prune, "prune", false, "also delete works that this command sent from clusters that are no longer targets")
	flags.StringVar(&o.SpokeContext, "spoke-context", "", "context of the only target cluster, to check that the executor has the rights")
	_ = cmd.RegisterFlagCompletionFunc("spoke-context", complete.Contexts(f))
	return cmd
}

// newDiff returns the command "work diff": apply that only compares.
func newDiff(f *options.Factory) *cobra.Command {
	o := &ApplyOptions{f: f}
	cmd := &cobra.Command{
		Use:   "diff NAME [-f FILE | -k FOLDER]",
		Short: "Show what work apply would change, or what differs on the clusters",
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
		Args:              options.Args(1, 1, "the name of the work"),
		ValidArgsFunction: complete.Works(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.Diff = args[0], true
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.addFlags(cmd, options.Parts{Compares: true})
	flags := cmd.Flags()
	flags.BoolVar(&o.Live, "live", false, "compare with what is on the clusters, not with what the hub has")
	flags.StringVar(&o.SpokeContext, "spoke-context", "", "with --live, context of the only target cluster, to compare the objects there")
	_ = cmd.RegisterFlagCompletionFunc("spoke-context", complete.Contexts(f))
	return cmd
}

func (o *ApplyOptions) addFlags(cmd *cobra.Command, parts options.Parts) {
	flags, f := cmd.Flags(), o.f
	o.Change.AddFlags(flags, parts)
	o.Targets.AddFlags(cmd, completions(f))
	o.Files.AddFlags(flags)
	flags.StringVar(&o.Deletion, "delete-option", "foreground", "what happens to the objects when the work is deleted: foreground or orphan")
	flags.StringVar(&o.UpdateStrategy, "update-strategy", "", "how existing objects are updated: "+strings.Join(work.UpdateStrategies(), ", "))
	flags.StringArrayVar(&o.Feedback, "feedback", nil, "a value to read back from the objects, NAME=JSONPATH; may be repeated")
	flags.StringVar(&o.Rollout, "rollout", "", "with --placement, how changes roll out to the clusters: all, progressive, per-group")
	flags.StringVar(&o.MaxConcurrency, "max-concurrency", "", "how many clusters a progressive rollout changes at a time: a number or a percentage")
	flags.StringVar(&o.Executor, "executor", "", "ServiceAccount of the cluster that applies the objects, NAMESPACE/NAME")
	flags.BoolVar(&o.Force, "force", false, "also write works that belong to a replica set or an add-on")
	flags.BoolVar(&o.Overwrite, "overwrite", false, "no effect: apply creates and updates")
	flags.Lookup("overwrite").Hidden = true
}

// liveCommand returns the command that compares the existing work with the clusters, which
// needs no file.
func (o *ApplyOptions) liveCommand() string {
	line := "kubectl ocm work diff " + ui.ShellWord(o.Name) + " --live"
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
	case o.SpokeContext != "" && o.Executor == "" && !o.Live:
		return options.Usage("--spoke-context is not needed", "it is for --executor of work apply and --live of work diff")
	case o.Deletion != "foreground" && o.Deletion != "orphan":
		return options.Usage(fmt.Sprintf("wrong value %q for --delete-option", o.Deletion), "use foreground or orphan")
	}
	if o.Overwrite {
		o.f.UI.Note("--overwrite has no effect: apply creates and updates; use --dry-run or work diff to check first")
	}
	if err := o.Targets.Check(true); err != nil {
		return err
	}
	return o.Change.Check(o.f.UI)
}
