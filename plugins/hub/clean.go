// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// CleanOptions are the flags of hub clean.
type CleanOptions struct {
	options.Change
	// Force removes a hub even if clusters are attached.
	Force bool

	f *options.Factory
}

func newClean(f *options.Factory) *cobra.Command {
	o := &CleanOptions{f: f}
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove the hub from a cluster",
		Long: options.Long(`
		Remove everything that "hub init" and the hub itself put on the cluster of --context, and
		check that nothing is left. This is refused while clusters are attached. With --force it
		continues once their agents have confirmed that they keep what works have applied; it does
		not wait for agents that are away.

		A hub whose process runs with --skip-remove-crds keeps its APIs with all objects of users:
		clusters, works, placements. Only the hub and the rights of its agents are removed, and a
		later "hub init" takes over what was kept.`),
		Example: options.Example(`
		kubectl ocm hub clean --context hub
		kubectl ocm hub clean --context hub --force --dry-run      # see what a hub with clusters would lose`),
		Args: options.Args(0, 0, "clean"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(o.f.UI); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags(), options.Parts{Yes: true})
	cmd.Flags().BoolVar(&o.Force, "force", false, "remove the hub even if clusters are attached; what their works applied stays on them")
	return cmd
}

// Run removes the hub.
func (o *CleanOptions) Run(ctx context.Context) error {
	u := o.f.UI
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	u.Note("hub: %s", c)
	p := u.Progress()
	result, err := hub.Clean(ctx, hub.CleanOptions{Common: o.Common(u, p.Step), Hub: c, Force: o.Force, Confirm: func(plan hub.CleanPlan) error {
		var targets []string
		if len(plan.Clusters) > 0 {
			stays := "what they applied stays"
			if plan.KeepsAPIs {
				stays = "they stay, and wait for a hub"
			}
			targets = append(targets, fmt.Sprintf("clusters: %s, with %s; %s", strings.Join(plan.Clusters, ", "), ui.Many(plan.Works, "work"), stays))
		}
		return u.Confirm(o.Yes, "Remove the hub of "+plan.Hub+"?", targets)
	}})
	p.Close()
	if err != nil {
		return err
	}
	if done, err := o.Preview(u, "CleanResult", result, result.Items); done || err != nil {
		if !o.Format.Machine() {
			o.warnKept(u, c, result)
		}
		return err
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "CleanResult", result, fleet.Names(result.Items))
	}
	if result.Action == fleet.Unchanged {
		u.Say("hub unchanged: there is none on %s", c)
	} else {
		u.Say("hub deleted from %s", c)
		o.warnObjects(u, result.Stays)
	}
	o.warnKept(u, c, result)
	return o.Objects(u, result.Items)
}

// warnObjects warns of the objects that works have left on their clusters.
func (o *CleanOptions) warnObjects(u *ui.UI, clusters []teardown.KeptCluster) {
	works, objects := 0, 0
	var away []string
	for _, c := range clusters {
		works, objects = works+c.Works, objects+c.Objects
		if !c.Confirmed {
			away = append(away, c.Cluster)
		}
	}
	if works == 0 {
		return
	}
	u.Warn("%s of %s stay on %s and are no longer managed", ui.Many(objects, "object"), ui.Many(works, "work"), ui.Many(len(clusters), "cluster"))
	if len(away) > 0 {
		u.Warn("the agents of %s were away and have not confirmed it: remove each of them before it joins another hub", strings.Join(away, ", "))
	}
}

// warnKept warns of APIs that were kept, or else of the clusters' namespaces, which were kept because
// users may have put objects there, and says how to remove them.
func (o *CleanOptions) warnKept(u *ui.UI, c *fleet.Cluster, result hub.CleanResult) {
	if len(result.KeptAPIs) > 0 {
		u.Warn("%s kept with all objects of users: the hub was set to skip their removal (--skip-remove-crds)", fleet.AreMany(len(result.KeptAPIs), "API"))
		u.Note("  fix:   kubectl ocm hub init%s, which takes them over, then hub clean to remove them", ui.ContextFlag(c))
		return
	}
	names := result.Kept
	if len(names) == 0 {
		return
	}
	u.Warn("the namespaces of the clusters stay, with any objects that users put there: %s", strings.Join(names, ", "))
	u.Note("  fix:   kubectl delete namespace %s%s", strings.Join(names, " "), ui.ContextFlag(c))
}
