// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// ApplyOptions are the flags of work apply.
type ApplyOptions struct {
	options.Change
	options.Targets
	// Name of the work.
	Name string
	// Files are files, folders, or - for standard input.
	Files []string
	// Recursive reads folders in folders.
	Recursive bool
	// Deletion is foreground or orphan.
	Deletion string
	// Force writes works that belong to somebody else.
	Force bool

	f         *options.Factory
	manifests []*unstructured.Unstructured
}

func newApply(f *options.Factory) *cobra.Command {
	o := &ApplyOptions{f: f}
	cmd := &cobra.Command{
		Use:   "apply NAME -f FILE",
		Short: "Send objects to managed clusters, or change what was sent",
		Long: options.Long(`
		Put the objects of files into a ManifestWork NAME for each of the clusters. The same
		command creates and updates. The objects are checked before anything is sent.`),
		Example: options.Example(`
		kubectl ocm work apply web -f web.yaml -c cluster1,cluster2 --context hub
		kubectl ocm work apply web -f manifests/ -l env=prod --wait`),
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
	flags := cmd.Flags()
	o.Change.AddFlags(flags, options.Parts{Diff: true, Wait: true})
	o.Targets.AddFlags(cmd, words(f))
	flags.StringSliceVarP(&o.Files, "filename", "f", nil, "files or folders with YAML or JSON manifests, - for standard input")
	flags.BoolVarP(&o.Recursive, "recursive", "R", true, "read folders in folders")
	flags.StringVar(&o.Deletion, "delete-option", "foreground", "what happens to the objects when the work is deleted: foreground or orphan")
	flags.BoolVar(&o.Force, "force", false, "also write works that belong to a replica set or an add-on")
	flags.Bool("overwrite", true, "")
	flags.Lookup("overwrite").Hidden = true
	return cmd
}

// Validate checks the flags.
func (o *ApplyOptions) Validate() error {
	switch {
	case len(o.Files) == 0:
		return options.Usage("there are no manifests: -f is missing", "kubectl ocm work apply NAME -f FILE -c CLUSTER")
	case o.Deletion != "foreground" && o.Deletion != "orphan":
		return options.Usage(fmt.Sprintf("wrong value %q for --delete-option", o.Deletion), "use foreground or orphan")
	}
	if err := o.Targets.Check(true); err != nil {
		return err
	}
	return o.Change.Check(o.f.UI)
}

// Run reads the files and sends the work.
func (o *ApplyOptions) Run(ctx context.Context) error {
	u := o.f.UI
	sources, err := o.sources()
	if err != nil {
		return err
	}
	namespace, named := o.f.Namespace()
	if !named {
		namespace = ""
	}
	if o.manifests, err = fleet.ReadManifests(sources, namespace); err != nil {
		return err
	}
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	p := u.Progress()
	result, failure := fleet.ApplyWork(ctx, fleet.WorkOptions{Common: o.Common(u, p.Step), Hub: c, Name: o.Name, Manifests: o.manifests,
		Targets: o.Targets.Targets, Orphan: o.Deletion == "orphan", Force: o.Force})
	p.Close()
	if failure != nil && len(result.Clusters) == 0 {
		return o.Diffed(failure)
	}
	if err := show(u, &o.Change, "WorkResult", result, failure); err != nil {
		return err
	}
	if failure == nil && !o.Wait && !o.Reads() {
		u.Next("kubectl ocm work list" + options.ContextFlag(c))
	}
	return failure
}
