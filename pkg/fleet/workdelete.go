// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// FindWorks returns where the works named in o are, without changing anything:
// what DeleteWorks would delete.
func FindWorks(ctx context.Context, o WorkOptions) ([]WorkInfo, error) {
	return ListWorks(ctx, WorkListOptions{Common: Common{Timeout: o.Timeout, Clock: o.Clock}, Hub: o.Hub, Names: []string{o.Name}, Targets: o.Targets})
}

// DeleteWorks deletes a work from clusters. With Wait it returns when the agents
// have removed the objects and the works are gone. A cluster without the work
// is unchanged; where none has it, the error is ErrNotFound.
func DeleteWorks(ctx context.Context, o WorkOptions) (WorkResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if err := checkWorkName(o.Name); err != nil {
		return WorkResult{}, err
	}
	names, err := o.Targets.Resolve(ctx, o.Hub)
	if err != nil {
		return WorkResult{}, err
	}
	result, err := each(names, func(name string) (Change, error) { return o.deleteFrom(ctx, r, name) })
	if err == nil && !slices.ContainsFunc(result.Items, func(c Change) bool { return c.Action != Unchanged }) {
		return result, NoWork(o.Name, "on "+listed(names), o.Hub)
	}
	return result, err
}

func (o *WorkOptions) deleteFrom(ctx context.Context, r *run, cluster string) (Change, error) {
	u := named(workv1.GroupVersion.WithKind("ManifestWork"), cluster, o.Name)
	live, err := r.live(ctx, o.Hub, u)
	if err != nil {
		return Change{}, explain("reading "+describe(u), o.Hub, err)
	}
	if live == nil {
		return Change{Object: u, Action: Unchanged}, nil
	}
	if owner := ownerOf(live); owner != "" && !o.Force {
		return Change{}, refused(describe(u)+" belongs to "+owner, "its owner would make it again", "delete the owner, or add --force")
	}
	change := Change{Object: u, Action: Deleted, Live: live}
	if o.reads() {
		change.Live, _ = maskedBelow(clean(live), nil)
		return change, nil
	}
	if err := o.release(ctx, live); err != nil {
		return Change{}, explain("deleting "+describe(u), o.Hub, err)
	}
	if !o.Wait {
		return change, nil
	}
	return change, o.awaitGone(ctx, r, live)
}

// release deletes the work; with Orphan its objects stay, with Force the agent
// is not waited for.
func (o *WorkOptions) release(ctx context.Context, live *unstructured.Unstructured) error {
	if o.Orphan {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": live.GetUID()},
			"spec": map[string]any{"deleteOption": map[string]any{"propagationPolicy": "Orphan"}}})
		if err != nil {
			return err
		}
		_, err = o.Hub.Client.Resource(manifestWorks).Namespace(live.GetNamespace()).Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
		if err != nil {
			return err
		}
	}
	if o.Force {
		return dropFinalizer(ctx, o.Hub, manifestWorks, live, workv1.FinalizerManifestWork)
	}
	return remove(ctx, o.Hub, live)
}

// awaitGone waits until exactly this work is gone.
func (o *WorkOptions) awaitGone(ctx context.Context, r *run, live *unstructured.Unstructured) error {
	var last *unstructured.Unstructured
	p := r.place(live.GetNamespace())
	err := await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: manifestWorks, Namespace: live.GetNamespace(), Name: o.Name, Clock: r.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 || items[0].GetUID() != live.GetUID() {
				return true, nil
			}
			last = items[0]
			p.see(workSight(last, ""))
			return false, nil
		})
	return r.timedOut(ctx, p.end(err, "gone"), describe(live)+" to be gone", func(ctx context.Context) *blocker { return o.stuck(ctx, last) })
}

// stuck explains what keeps a work that is being deleted.
func (o *WorkOptions) stuck(ctx context.Context, u *unstructured.Unstructured) *blocker {
	if u == nil {
		return nil
	}
	going := departures{hub: o.Hub}
	return going.blocker(ctx, u)
}

// departures explain what keeps works that are being deleted. Each cluster is
// read once.
type departures struct {
	hub      *Cluster
	clusters map[string]departure
}

// departure is what the hub knows of the cluster of such a work.
type departure struct {
	missing, silent bool
}

// blocker is what keeps a work; nil for one that is not being deleted.
func (d *departures) blocker(ctx context.Context, u *unstructured.Unstructured) *blocker {
	if u.GetDeletionTimestamp() == nil {
		return nil
	}
	cluster, since := u.GetNamespace(), u.GetDeletionTimestamp().Time
	finalizers := strings.Join(u.GetFinalizers(), ", ")
	if !slices.Contains(u.GetFinalizers(), workv1.FinalizerManifestWork) {
		return &blocker{cause: "finalizers of somebody else hold it: " + finalizers, since: since}
	}
	force := fmt.Sprintf("kubectl ocm work delete %s -c %s --force%s      leaves its objects on the cluster", u.GetName(), cluster, d.hub.flag())
	switch state := d.of(ctx, cluster); {
	case state.missing:
		return &blocker{cause: "the finalizer " + workv1.FinalizerManifestWork + " is held by the agent of " + cluster + ", and there is no such cluster", since: since, fix: force}
	case state.silent:
		return &blocker{cause: "the agent of " + cluster + " removes the objects, and it does not report", since: since, fix: force}
	}
	if b := workBlocker(u); b != nil {
		return b
	}
	return &blocker{cause: "the agent of " + cluster + " is still removing the objects (finalizer " + finalizers + ")", since: since, fix: "wait longer: --timeout"}
}

func (d *departures) of(ctx context.Context, cluster string) departure {
	if have, ok := d.clusters[cluster]; ok {
		return have
	}
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, d.hub.Client, managedClusters, "", cluster)
	state := departure{missing: apierrors.IsNotFound(err), silent: err == nil && !alive(mc)}
	if d.clusters == nil {
		d.clusters = map[string]departure{}
	}
	d.clusters[cluster] = state
	return state
}
