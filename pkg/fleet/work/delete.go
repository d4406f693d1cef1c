// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// Find returns where the works named in o are: what Delete would delete. It changes nothing.
func Find(ctx context.Context, o Options) ([]Info, error) {
	return List(ctx, ListOptions{Common: fleet.Common{Timeout: o.Timeout, Clock: o.Clock}, Hub: o.Hub, Names: []string{o.Name}, Targets: o.Targets})
}

// Delete deletes a work from clusters. With Wait it returns when the agents
// have removed the objects and the works are gone. A cluster without the work
// is unchanged; where none has it, the error is naming.ErrNotFound.
func Delete(ctx context.Context, o Options) (fleet.ClusterChanges, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	if err := checkName(o.Name); err != nil {
		return fleet.ClusterChanges{}, err
	}
	names, err := o.Targets.Resolve(ctx, o.Hub)
	if err != nil {
		return fleet.ClusterChanges{}, err
	}
	result, err := fleet.Each(names, func(name string) (fleet.Change, error) { return o.deleteFrom(ctx, r, name) })
	if err == nil && !slices.ContainsFunc(result.Items, func(c fleet.Change) bool { return c.Action != fleet.Unchanged }) {
		return result, naming.NoWork(o.Name, "on "+fleet.Listed(names), o.Hub)
	}
	return result, err
}

func (o *Options) deleteFrom(ctx context.Context, r *fleet.Run, cluster string) (fleet.Change, error) {
	u := fleet.Named(workv1.GroupVersion.WithKind("ManifestWork"), cluster, o.Name)
	live, err := write.Live(ctx, o.Hub, u)
	if err != nil {
		return fleet.Change{}, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
	}
	if live == nil {
		return fleet.Change{Object: u, Action: fleet.Unchanged}, nil
	}
	if owner := ownerOf(live); owner != "" && !o.Force {
		return fleet.Change{}, fleet.Refuse(fleet.Describe(u)+" belongs to "+owner, "its owner would recreate it", DeleteOwner.With())
	}
	change := fleet.Change{Object: u, Action: fleet.Deleted, Live: live}
	if o.Reads() {
		change.Live, _ = write.MaskedBelow(write.Clean(live), nil)
		return change, nil
	}
	if err := o.release(ctx, live); err != nil {
		return fleet.Change{}, fleet.Explain("deleting "+fleet.Describe(u), o.Hub, err)
	}
	if !o.Wait {
		return change, nil
	}
	return change, o.awaitGone(ctx, r, live)
}

// release deletes the work; with Orphan its objects stay, with Force it does not wait for the
// agent.
func (o *Options) release(ctx context.Context, live *unstructured.Unstructured) error {
	if o.Orphan {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": live.GetUID()},
			"spec": map[string]any{"deleteOption": map[string]any{"propagationPolicy": "Orphan"}}})
		if err != nil {
			return err
		}
		_, err = o.Hub.Client.Resource(fleet.ManifestWorks).Namespace(live.GetNamespace()).Patch(ctx, live.GetName(), types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: fleet.FieldManager})
		if err != nil {
			return err
		}
	}
	if o.Force {
		return fleet.DropFinalizer(ctx, o.Hub, fleet.ManifestWorks, live, workv1.FinalizerManifestWork)
	}
	return fleet.Remove(ctx, o.Hub, live)
}

// awaitGone waits until exactly this work is gone.
func (o *Options) awaitGone(ctx context.Context, r *fleet.Run, live *unstructured.Unstructured) error {
	var last *unstructured.Unstructured
	p := r.Place(live.GetNamespace())
	err := await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: fleet.ManifestWorks, Namespace: live.GetNamespace(), Name: o.Name,
		Clock: r.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 || items[0].GetUID() != live.GetUID() {
				return true, nil
			}
			last = items[0]
			p.See(describeWork(last, ""))
			return false, nil
		})
	return r.TimedOut(ctx, p.End(err, "gone"), fleet.Describe(live)+" to be gone",
		func(ctx context.Context) *fleet.Blocker { return o.deletionBlocker(ctx, last) })
}

// deletionBlocker explains what holds up the deletion of a work.
func (o *Options) deletionBlocker(ctx context.Context, u *unstructured.Unstructured) *fleet.Blocker {
	if u == nil {
		return nil
	}
	going := Departures{Hub: o.Hub}
	return going.Blocker(ctx, u)
}
