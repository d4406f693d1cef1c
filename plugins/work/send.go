// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Run reads the files and sends the work.
func (o *ApplyOptions) Run(ctx context.Context) error {
	p := o.f.UI.Progress()
	defer p.Close()
	wanted, err := o.wanted(p.Step)
	if err != nil {
		return err
	}
	if o.Live {
		return o.diffLive(ctx, wanted)
	}
	if o.Wanted.Executor != "" && wanted.Spoke != nil {
		if err := work.CheckExecutor(ctx, wanted); err != nil {
			return err
		}
	}
	if set, err := work.BySet(ctx, wanted); err != nil {
		return err
	} else if set {
		return o.applySet(ctx, wanted)
	}
	if err := o.confirmPrune(ctx, wanted); err != nil {
		return err
	}
	result, failure := work.Apply(ctx, wanted)
	p.Close()
	if failure != nil && len(result.Clusters) == 0 {
		return failure
	}
	if err := o.Clusters(o.f.UI, "WorkResult", result, failure, line); err != nil || o.Wait || o.Reads() {
		return err
	}
	o.f.UI.Next("kubectl ocm work list" + ui.ContextFlag(wanted.Hub))
	return nil
}

// wanted returns the options of the library. It makes no request.
func (o *ApplyOptions) wanted(step func(fleet.Step)) (work.Options, error) {
	sources, err := o.Sources(o.f.UI)
	if err != nil {
		return work.Options{}, err
	}
	w := o.Wanted
	w.Common, w.Targets, w.Orphan = o.Common(o.f.UI, step), o.Targets.Targets, o.Deletion == "orphan"
	if len(sources) > 0 {
		if w.Manifests, err = manifest.Read(sources, o.f.GivenNamespace()); err != nil {
			return w, err
		}
	}
	if w.Hub, err = o.f.Cluster(""); err != nil {
		return w, err
	}
	if o.SpokeContext != "" {
		w.Spoke, err = o.f.Cluster(o.SpokeContext)
	}
	return w, err
}

// confirmPrune asks before works are deleted.
func (o *ApplyOptions) confirmPrune(ctx context.Context, wanted work.Options) error {
	if !o.Wanted.Prune || o.Reads() {
		return nil
	}
	leaving, err := work.FindPrunable(ctx, wanted)
	if err != nil {
		return err
	}
	return o.Ask(o.f.UI, wanted.Hub, "Delete work "+o.Wanted.Name+" from clusters that are no longer targets?", describeWorks(leaving))
}

// diffLive compares the work with the objects on the clusters.
func (o *ApplyOptions) diffLive(ctx context.Context, wanted work.Options) error {
	changes, failure := work.DiffLive(ctx, wanted)
	_, err := o.Preview(o.f.UI, "WorkResult", nil, changes)
	if failure != nil {
		return failure
	}
	return err
}

// applySet writes a replica set, with which the hub sends the work to the clusters that
// the placement selects.
func (o *ApplyOptions) applySet(ctx context.Context, wanted work.Options) error {
	change, failure := work.ApplySet(ctx, wanted)
	if failure != nil && change.Object == nil {
		return failure
	}
	if err := o.FinishSome(o.f.UI, "WorkSetResult", []fleet.Change{change}, failure); err != nil || o.Wait || o.Reads() {
		return err
	}
	o.f.UI.Next("kubectl ocm work list --sets" + ui.ContextFlag(wanted.Hub))
	return nil
}
