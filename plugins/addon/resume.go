// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// ResumeOptions are the flags of addon resume.
type ResumeOptions struct {
	options.Change
	// Names of the add-ons.
	Names []string

	f *options.Factory
}

func newResume(f *options.Factory) *cobra.Command {
	o := &ResumeOptions{f: f}
	cmd := &cobra.Command{
		Use: "resume NAME...", Short: "Resume a rollout that failures have stopped", Args: options.Args(1, -1, "the name of an add-on"),
		Long: options.Long(`
		Resume rollouts of add-ons that stopped because more clusters timed out than maxFailures of
		their strategy allows. Clusters that have timed out stay as they are and no longer block
		other clusters, not even from a mandatory group; later failures are counted from zero. A
		cluster that recovers counts as done without this command.`),
		Example: options.Example(`
		kubectl ocm addon resume metrics --context hub
		kubectl ocm addon resume metrics --dry-run --context hub`),
		ValidArgsFunction: complete.AddOns(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return o.Diffed(f.Do(cmd, o.Validate, o.Run))
		},
	}
	o.AddFlags(cmd.Flags(), options.Parts{Diff: true, Wait: true, WaitDefault: true})
	return cmd
}

// Validate checks the names and the flags.
func (o *ResumeOptions) Validate() error {
	if err := checkNames(o.Names); err != nil {
		return err
	}
	return o.Check(o.f.UI)
}

// Run resumes the rollouts and prints what was done.
func (o *ResumeOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	p := u.Progress()
	defer p.Close()
	wanted := addon.Options{Common: o.Common(u, p.Step), Hub: hub, Names: o.Names, Warn: func(text string) { u.Warn("%s", text) }}
	result, failure := addon.Resume(ctx, wanted)
	p.Close()
	if err := o.FinishSome(u, "AddOnResult", result.Items, failure); err != nil || o.Reads() {
		return err
	}
	u.Next("kubectl ocm addon status " + o.Names[0] + ui.ContextFlag(hub))
	return nil
}
