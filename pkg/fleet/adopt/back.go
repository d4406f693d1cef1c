// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// BackOptions say which hub to give back.
type BackOptions struct {
	fleet.Common
	// Hub is the cluster.
	Hub *fleet.Cluster
}

// back is one run of Back.
type back struct {
	BackOptions
	*fleet.Run
	state *state
}

// Back gives an adopted hub back to the operator that ran it before: ours ends, and what the
// adoption replaced or removed is put back as it was recorded. No instance of the hub's APIs is
// deleted. It continues where an interrupted run stopped.
func Back(ctx context.Context, o BackOptions) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	b := &back{BackOptions: o, Run: r}
	result := Result{Context: o.Hub.Context, Server: o.Hub.Server(), Action: fleet.Unchanged}
	r.Step("hub to give back")
	if err := b.look(ctx); err != nil {
		return result, r.Fail(err)
	}
	result.Action, result.Items = fleet.Configured, b.plan()
	if b.state.ours != nil {
		result.From = hub.ImageOf(b.state.ours)
	}
	if before := recordedOperator(b.state.record); before != nil {
		result.To = hub.ImageOf(before)
	}
	r.Done(result.To)
	if o.Reads() {
		return result, nil
	}
	for _, step := range []func(context.Context) error{b.stop, b.removeOurs, b.restore, b.await, b.forget} {
		if err := step(ctx); err != nil {
			return result, r.Fail(err)
		}
	}
	return result, nil
}

// recordedOperator returns the operator's Deployment as recorded; nil if there was none.
func recordedOperator(r *record) *appsv1.Deployment {
	u := r.find(fleet.Named(appsKind.WithKind("Deployment"), operatorv1.NamespaceOperator, manager))
	if u == nil {
		return nil
	}
	d, _ := typed.FromUnstructured[appsv1.Deployment](u) // it was one when it was recorded
	return d
}

func (b *back) look(ctx context.Context) error {
	if _, err := fleet.ServerVersion(ctx, b.Hub); err != nil {
		return err
	}
	var err error
	if b.state, err = gather(ctx, b.Hub); err != nil {
		return err
	}
	if b.state.record == nil {
		return fleet.Refuse("there is nothing to give back", "this hub was not adopted: there is no configmap "+operatorv1.NamespaceOperator+"/"+recordName,
			fleet.Advice("leave it as it is"))
	}
	if err := b.state.checkLayout(); err != nil {
		return err
	}
	for _, cm := range b.state.managers {
		if cm.DeletionTimestamp != nil {
			return fleet.Refuse("the hub is being removed", "clustermanager/"+cm.Name+" is being deleted", fleet.Advice("wait until it is gone"))
		}
	}
	if err := checkRights(ctx, b.Hub); err != nil {
		return err
	}
	return b.state.count(ctx, b.Hub)
}

// stays reports whether an object is never deleted or replaced on the way back: what belongs to
// it would be lost, or others may have changed it since. It only loses our label.
func stays(u *unstructured.Unstructured) bool {
	switch u.GetKind() {
	case "Namespace", "ClusterManager", "Secret", "ServiceAccount":
		return true
	}
	return u.GetKind() == "ConfigMap" && u.GetName() == operatorv1.ConfigMapCABundle
}

// fate decides what the way back does to an object that ours has, or that was recorded.
func (b *back) fate(u *unstructured.Unstructured) fleet.Fate {
	recorded, live := b.state.record.find(u), b.state.live[key(u)]
	switch {
	case recorded == nil && (stays(u) && u.GetKind() != "ServiceAccount" || u.GetKind() == "CustomResourceDefinition"),
		recorded == nil && u.GetLabels()[operatorv1.LabelCreatedByClusterManager] != manager:
		return fleet.Kept
	case recorded == nil:
		return fleet.Removed
	case live != nil && stays(u):
		return fleet.Kept
	}
	return fleet.Restored
}

func (b *back) plan() []fleet.Planned {
	var out []fleet.Planned
	for _, u := range b.state.inOrder() {
		if b.fate(u) != fleet.Restored {
			out = append(out, fleet.Planned{Object: fleet.Reference(u), Fate: b.fate(u)})
		}
	}
	for _, u := range b.state.record.objects {
		if b.fate(u) == fleet.Restored {
			out = append(out, fleet.Planned{Object: fleet.Reference(u), Fate: fleet.Restored})
		}
	}
	slices.SortStableFunc(out, func(x, y fleet.Planned) int { return fateOrder[x.Fate] - fateOrder[y.Fate] })
	return append(out, b.state.counts...)
}

// stop ends our process, so that it repairs nothing of what follows.
func (b *back) stop(ctx context.Context) error {
	b.Step("our process stopped")
	if b.state.ours != nil {
		if err := workload.End(ctx, b.Run, b.Hub, b.state.ours); err != nil {
			return err
		}
		if err := fleet.Remove(ctx, b.Hub, fleet.Named(leaseKind, operatorv1.NamespaceOperator, operatorLock)); err != nil {
			return fleet.Explain("releasing the lease of our process", b.Hub, err)
		}
	}
	b.Done("")
	return nil
}

// removeOurs removes what the other hub did without.
func (b *back) removeOurs(ctx context.Context) error {
	b.Step("our objects removed")
	n := 0
	for _, u := range b.state.inOrder() {
		isOperator := b.state.ours != nil && u.GetUID() == b.state.ours.UID
		switch fate := b.fate(u); {
		case isOperator:
		case fate == fleet.Removed || fate == fleet.Restored && retypedService(u, b.state.record.find(u)):
			if err := fleet.Remove(ctx, b.Hub, u); err != nil {
				return fleet.Explain("removing "+fleet.Describe(u), b.Hub, err)
			}
			n++
		case fate == fleet.Kept && b.state.record.find(u) != nil:
			if err := b.unlabel(ctx, u); err != nil {
				return err
			}
		}
	}
	b.Done(fleet.Many(n, "object"))
	return nil
}

func retypedService(live, recorded *unstructured.Unstructured) bool {
	one, _, _ := unstructured.NestedString(live.Object, "spec", "type")
	other, _, _ := unstructured.NestedString(recorded.Object, "spec", "type")
	return live.GetKind() == "Service" && one != other
}

// unlabel takes our label from what stays, unless it had that before.
func (b *back) unlabel(ctx context.Context, u *unstructured.Unstructured) error {
	const label = operatorv1.LabelCreatedByClusterManager
	if u.GetLabels()[label] == "" || b.state.record.find(u).GetLabels()[label] != "" {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:null}}}`, u.GetUID(), label)
	_, err := b.Hub.Client.Resource(fleet.ResourceOf(u)).Namespace(u.GetNamespace()).Patch(ctx, u.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fleet.FieldManager})
	return fleet.Explain("giving up "+fleet.Describe(u), b.Hub, err)
}

// restore puts back what was recorded, the operator last.
func (b *back) restore(ctx context.Context) error {
	b.Step("other hub restored")
	n := 0
	for _, u := range b.state.record.objects {
		if b.fate(u) != fleet.Restored {
			continue
		}
		if err := write.Again(func() error { return b.put(ctx, u) }); err != nil {
			return fleet.Explain("restoring "+fleet.Describe(u), b.Hub, err)
		}
		n++
	}
	b.Done(fleet.Many(n, "object"))
	return nil
}

// put creates an object, or replaces the one of its name.
func (b *back) put(ctx context.Context, recorded *unstructured.Unstructured) error {
	u, api := recorded.DeepCopy(), b.Hub.Client.Resource(fleet.ResourceOf(recorded)).Namespace(recorded.GetNamespace())
	live, err := api.Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, u, metav1.CreateOptions{FieldManager: fleet.FieldManager})
		return err
	}
	if err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(restorable(live).Object, u.Object) {
		return nil
	}
	u.SetResourceVersion(live.GetResourceVersion())
	_, err = api.Update(ctx, u, metav1.UpdateOptions{FieldManager: fleet.FieldManager})
	return err
}

// await waits until the other operator and the controllers that it had run again.
func (b *back) await(ctx context.Context) error {
	if !b.Given.Wait {
		return nil
	}
	for _, u := range slices.Backward(b.state.record.objects) {
		if u.GetKind() != "Deployment" {
			continue
		}
		b.Step("deployment " + u.GetName())
		if _, err := workload.Deployed(ctx, b.Run, b.Hub, u.GetNamespace(), u.GetName()); err != nil {
			return err
		}
		b.Done("")
	}
	return nil
}

// forget deletes the record: the next adoption makes its own.
func (b *back) forget(ctx context.Context) error {
	return fleet.Explain("removing the record of the adoption", b.Hub, fleet.Remove(ctx, b.Hub, b.state.record.live))
}
