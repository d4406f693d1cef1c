// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/join"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// joins reports whether flags are given that only joining has.
func (o *Options) joins() bool {
	return o.Accept || o.Rejoin || o.Adopt || o.Replace || o.ClusterSet+o.Server+o.Token+o.TokenFile+o.Bundle+o.ManagedKubeconfig+o.Layout != "" ||
		len(o.Labels)+len(o.Annotations)+len(o.Gates) > 0
}

// validateUpgrade checks the flags of an upgrade, or of the way back.
func (o *Options) validateUpgrade() error {
	joins := o.joins()
	switch {
	case o.BackOut && (joins || o.Upgrade || o.Version+o.Registry+o.Image != ""):
		return options.Usage("--back-out restores the agent that the cluster had", "leave the other flags out")
	case joins:
		return options.Usage("--upgrade changes only the release of the agent", "leave the other flags out, or join without --upgrade")
	case o.Plan && !o.BackOut:
		return options.Usage("--plan needs --adopt or --back-out", "use --dry-run or --diff to see what the upgrade would change")
	case o.Name != "":
		if err := naming.Check(o.Name); err != nil {
			return err
		}
	}
	return cmp.Or(member.CheckKlusterlet(o.Klusterlet), o.Release.Check(), o.Change.Check(o.f.UI))
}

// upgrade moves the agent to another release and prints both.
func (o *Options) upgrade(ctx context.Context, spoke *fleet.Cluster) error {
	u := o.f.UI
	wanted := join.UpgradeOptions{Name: o.Name, Spoke: spoke, Klusterlet: o.Klusterlet, Version: o.VersionOr(version.Get())}
	if o.Registry+o.Image != "" {
		_, wanted.Image = o.Images(version.Get())
	}
	if o.HubContext != "" {
		var err error
		if wanted.Hub, err = o.f.Cluster(o.HubContext); err != nil {
			return err
		}
	}
	p := u.Progress()
	wanted.Common = o.Common(u, p.Step)
	result, err := join.Upgrade(ctx, wanted)
	p.Close()
	if err != nil {
		return o.Diffed(err)
	}
	if done, err := o.Preview(u, "UpgradeResult", result, result.Items); done || err != nil {
		return err
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "UpgradeResult", result, fleet.Names(result.Items))
	}
	u.Say("agent of %s upgraded from %s to %s (%s)", result.Cluster, result.From, result.Version, result.Action)
	return o.Objects(u, result.Items)
}

// backOut gives the cluster back to the operator that it was taken over from.
func (o *Options) backOut(ctx context.Context, spoke *fleet.Cluster) error {
	u := o.f.UI
	p := u.Progress()
	common := o.Common(u, p.Step)
	if o.Plan && !common.Reads() {
		common.DryRun = fleet.DryRunClient
	}
	result, err := join.Back(ctx, join.BackOptions{Common: common, Name: o.Name, Spoke: spoke, Klusterlet: o.Klusterlet})
	p.Close()
	switch {
	case err != nil:
		return err
	case common.Reads():
		return o.Output.Plan(u, "BackOutPlan", result, result.Items)
	case o.Format.Machine():
		return u.Result(o.Format, "BackOutResult", result, fleet.PlannedNames(result.Items))
	}
	u.Say("the agent of %s is run by %s again", result.Cluster, result.To)
	return nil
}
