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
	// Force writes works that belong to somebody else.
	Force bool
	// Overwrite is an old flag without effect.
	Overwrite bool
	// UpdateStrategy and Feedback are for all objects.
	UpdateStrategy string
	Feedback       []string
	// Prune also deletes the work where it is not meant any more.
	Prune bool
	// Executor is the ServiceAccount that applies the objects, NAMESPACE/NAME.
	Executor string
	// SpokeContext is the context of the one cluster that is meant.
	SpokeContext string
	// Live compares with what is on the clusters.
	Live bool
	// Rollout and MaxConcurrency say how a placement's clusters are changed.
	Rollout, MaxConcurrency string

	f         *options.Factory
	manifests []*unstructured.Unstructured
}

func newApply(f *options.Factory) *cobra.Command {
	o := &ApplyOptions{f: f}
	cmd := &cobra.Command{
		Use:   "apply NAME {-f FILE | -k FOLDER}",
		Short: "Send objects to managed clusters, or change what was sent",
		Long: options.Long(`
		Put the objects of files into a ManifestWork NAME for each of the clusters. The same
		command creates and updates, and what it does not say is as if it was never said. The
		objects are checked before anything is sent.

		With --prune the work is also deleted from clusters that are not meant any more, where
		this command has sent it. With --executor the objects are applied with the rights of a
		ServiceAccount of the cluster; --spoke-context asks that cluster first whether it has
		them.

		With --placement alone the hub keeps the work on what the placement selects, now and
		later, by a ManifestWorkReplicaSet of the same name in the placement's namespace. A
		hub that does not do that gets a work for each cluster that is selected now.`),
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
	flags.BoolVar(&o.Prune, "prune", false, "also delete the work from clusters that are not meant any more, where this command has sent it")
	flags.StringVar(&o.SpokeContext, "spoke-context", "", "context of the one cluster that is meant, to ask it whether the executor has the rights")
	_ = cmd.RegisterFlagCompletionFunc("spoke-context", complete.Contexts(f))
	return cmd
}

// newDiff is apply that only compares.
func newDiff(f *options.Factory) *cobra.Command {
	o := &ApplyOptions{f: f}
	cmd := &cobra.Command{
		Use:   "diff NAME [-f FILE | -k FOLDER]",
		Short: "Show what work apply would change, or what differs on the clusters",
		Long: options.Long(`
		Compare the objects of files with the work NAME of each of the clusters. The exit code
		is 0 when nothing differs, 1 when something does, and 2 when that cannot be told.

		With --live, compare what the work wants with what is on the clusters, by what their
		agents have told: whether each object is applied and there, and the values that
		feedback rules read back. With --spoke-context, for one cluster, the objects there are
		compared themselves, as the agent's next write would change them. Without -f or -k
		the objects are those of the work as it is.`),
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
	flags.StringVar(&o.SpokeContext, "spoke-context", "", "with --live, context of the one cluster that is meant, to compare the objects there")
	_ = cmd.RegisterFlagCompletionFunc("spoke-context", complete.Contexts(f))
	return cmd
}

func (o *ApplyOptions) addFlags(cmd *cobra.Command, parts options.Parts) {
	flags, f := cmd.Flags(), o.f
	o.Change.AddFlags(flags, parts)
	o.Targets.AddFlags(cmd, words(f))
	o.Files.AddFlags(flags)
	flags.StringVar(&o.Deletion, "delete-option", "foreground", "what happens to the objects when the work is deleted: foreground or orphan")
	flags.StringVar(&o.UpdateStrategy, "update-strategy", "", "how objects that are there already are changed: "+strings.Join(work.UpdateStrategies(), ", "))
	flags.StringArrayVar(&o.Feedback, "feedback", nil, "a value to read back from the objects, NAME=JSONPATH; may be given again")
	flags.StringVar(&o.Rollout, "rollout", "", "with --placement, how a change reaches the clusters: all, progressive, per-group")
	flags.StringVar(&o.MaxConcurrency, "max-concurrency", "", "clusters that a progressive rollout changes at a time, a number or a percentage")
	flags.StringVar(&o.Executor, "executor", "", "ServiceAccount of the cluster with whose rights the objects are applied, NAMESPACE/NAME")
	flags.BoolVar(&o.Force, "force", false, "also write works that belong to a replica set or an add-on")
	flags.BoolVar(&o.Overwrite, "overwrite", false, "no effect: apply creates and updates")
	flags.Lookup("overwrite").Hidden = true
}

// liveLine compares the work as it is with what is on the clusters, for which no file
// is needed.
func (o *ApplyOptions) liveLine() string {
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
		return options.Usage("there is nothing to compare with: -f is missing", o.liveLine())
	case !given && !o.Live:
		return options.Usage("there are no manifests: -f is missing", "kubectl ocm work apply NAME -f FILE -c CLUSTER")
	case o.SpokeContext != "" && o.Executor == "" && !o.Live:
		return options.Usage("--spoke-context is not needed", "it goes with --executor of work apply, and with --live of work diff")
	case o.Deletion != "foreground" && o.Deletion != "orphan":
		return options.Usage(fmt.Sprintf("wrong value %q for --delete-option", o.Deletion), "use foreground or orphan")
	}
	if o.Overwrite {
		o.f.UI.Note("--overwrite has no effect: apply creates and updates; use --dry-run or work diff to look first")
	}
	if err := o.Targets.Check(true); err != nil {
		return err
	}
	return o.Change.Check(o.f.UI)
}
