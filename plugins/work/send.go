// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"

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
	if o.Executor != "" && wanted.Spoke != nil {
		if err := work.CheckExecutor(ctx, wanted); err != nil {
			return o.Diffed(err)
		}
	}
	if set, err := work.BySet(ctx, wanted); err != nil {
		return o.Diffed(err)
	} else if set {
		return o.applySet(ctx, wanted)
	}
	if err := o.confirmPrune(ctx, wanted); err != nil {
		return err
	}
	result, failure := work.Apply(ctx, wanted)
	p.Close()
	if failure != nil && len(result.Clusters) == 0 {
		return o.Diffed(failure)
	}
	if err := o.Clusters(o.f.UI, "WorkResult", result, failure, line); err != nil {
		return err
	}
	if failure == nil && !o.Wait && !o.Reads() {
		o.f.UI.Next("kubectl ocm work list" + ui.ContextFlag(wanted.Hub))
	}
	return failure
}

// wanted returns the options of the library. It makes no request.
func (o *ApplyOptions) wanted(step func(fleet.Step)) (work.Options, error) {
	sources, err := o.Sources(o.f.UI)
	if err != nil {
		return work.Options{}, err
	}
	w := work.Options{Common: o.Common(o.f.UI, step), Name: o.Name,
		Targets: o.Targets.Targets, Orphan: o.Deletion == "orphan", Force: o.Force, UpdateStrategy: o.UpdateStrategy, Feedback: o.Feedback,
		Rollout: o.Rollout, MaxConcurrency: o.MaxConcurrency, Prune: o.Prune, Executor: o.Executor}
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
	if !o.Prune || o.Reads() {
		return nil
	}
	leaving, err := work.FindPrunable(ctx, wanted)
	if err != nil || len(leaving) == 0 {
		return err
	}
	targets := []string{"hub: " + wanted.Hub.String()}
	for _, w := range leaving {
		targets = append(targets, fmt.Sprintf("work %s on %s: %s", w.Name, w.Cluster, ui.Many(w.Objects.Total, "object")))
	}
	return o.f.UI.Confirm(o.Yes, "Delete work "+o.Name+" from clusters that are no longer targets?", targets)
}

// diffLive compares the work with the objects on the clusters.
func (o *ApplyOptions) diffLive(ctx context.Context, wanted work.Options) error {
	changes, failure := work.DiffLive(ctx, wanted)
	_, err := o.Preview(o.f.UI, "WorkResult", nil, changes)
	if failure != nil {
		return o.Diffed(failure)
	}
	return err
}

// applySet writes a replica set, with which the hub sends the work to the clusters that
// the placement selects.
func (o *ApplyOptions) applySet(ctx context.Context, wanted work.Options) error {
	change, failure := work.ApplySet(ctx, wanted)
	if failure != nil && change.Object == nil {
		return o.Diffed(failure)
	}
	if err := o.Finish(o.f.UI, "WorkSetResult", []fleet.Change{change}); err != nil {
		return err
	}
	if failure == nil && !o.Wait && !o.Reads() {
		o.f.UI.Next("kubectl ocm work list --sets" + ui.ContextFlag(wanted.Hub))
	}
	return failure
}
