// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// write creates the objects in the order of the file: those of one kind in parallel, and the next
// kind when all of them are there.
func (r *restorer) write(ctx context.Context) error {
	var group *errgroup.Group
	var inner context.Context
	var mu sync.Mutex
	rank, total := -1, 0
	settle := func() error {
		if group == nil {
			return nil
		}
		err := group.Wait()
		if err == nil && order[rank].name == kindManagementAddOn {
			err = r.adopt(ctx)
		}
		return err
	}
	r.run.Step("objects")
	_, err := r.scan(func(u *unstructured.Unstructured) error {
		at, _ := rankOf(u)
		if at != rank {
			if err := settle(); err != nil {
				return err
			}
			rank = at
			group, inner = errgroup.WithContext(ctx)
			group.SetLimit(writers)
			r.result.Kinds = append(r.result.Kinds, KindResult{Kind: u.GetKind()})
			r.run.Detail(order[rank].resource.Resource)
		}
		k := order[at]
		group.Go(func() error {
			created, err := r.object(inner, k, u)
			mu.Lock()
			defer mu.Unlock()
			r.count(created)
			return fleet.Explain("restoring "+fleet.Describe(u), r.Hub, err)
		})
		total++
		return nil
	})
	if err == nil {
		err = settle()
	} else if group != nil {
		_ = group.Wait()
	}
	if err == nil {
		r.run.Done(fmt.Sprintf("%d of them, in %d kinds", total, len(r.result.Kinds)))
	}
	r.result.Owners = r.owners.dropped
	return err
}

// object creates one object, unless it is there, and reports whether it did.
func (r *restorer) object(ctx context.Context, k kind, u *unstructured.Unstructured) (bool, error) {
	if k.name == kindClusterManager {
		return r.settings(ctx, u)
	}
	client, generation := r.Hub.Client.Resource(k.resource).Namespace(u.GetNamespace()), u.GetGeneration()
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	r.prepare(k, u)
	live, err := client.Create(ctx, u, metav1.CreateOptions{FieldManager: fleet.FieldManager})
	created := err == nil
	if apierrors.IsAlreadyExists(err) {
		live, err = client.Get(ctx, u.GetName(), metav1.GetOptions{})
	}
	if err != nil {
		return created, err
	}
	r.owners.add(k, live)
	had, _, _ := unstructured.NestedMap(live.Object, "status")
	if !k.restored || len(status) == 0 || len(had) > 0 {
		return created, nil
	}
	renumber(status, generation, live.GetGeneration())
	return created, r.patch(ctx, k, live, map[string]any{"status": status}, "status")
}

// prepare makes an object of the backup one to create.
func (r *restorer) prepare(k kind, u *unstructured.Unstructured) {
	unstructured.RemoveNestedField(u.Object, "status")
	u.SetGeneration(0)
	r.owners.settle(k, u)
	hold(u)
}

// patch sends a merge patch for exactly this object.
func (r *restorer) patch(ctx context.Context, k kind, live *unstructured.Unstructured, fields map[string]any, subresource ...string) error {
	body := &unstructured.Unstructured{Object: fields}
	body.SetUID(live.GetUID())
	raw, err := json.Marshal(body.Object)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", fleet.Describe(live), err)
	}
	_, err = r.Hub.Client.Resource(k.resource).Namespace(live.GetNamespace()).
		Patch(ctx, live.GetName(), types.MergePatchType, raw, metav1.PatchOptions{FieldManager: fleet.FieldManager}, subresource...)
	return err
}

// unhold undoes hold in a backup that is made before a restore has finished.
func unhold(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	if annotations[operatorv1.AnnotationHeldByRestore] != "true" {
		return
	}
	delete(annotations, operatorv1.AnnotationHeldByRestore)
	if u.GetKind() == kindCluster {
		_ = unstructured.SetNestedField(u.Object, true, "spec", "hubAcceptsClient") // a cluster has a spec
	} else {
		delete(annotations, clusterv1beta1.AnnotationSchedulingDisable)
	}
	u.SetAnnotations(annotations)
}

// hold keeps a cluster from being accepted, and a placement from being evaluated.
func hold(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	switch accepted, _, _ := unstructured.NestedBool(u.Object, "spec", "hubAcceptsClient"); {
	case u.GetKind() == kindCluster && accepted:
		_ = unstructured.SetNestedField(u.Object, false, "spec", "hubAcceptsClient") // the field exists
		annotations[operatorv1.AnnotationHeldByRestore] = "true"
	case u.GetKind() == kindPlacement && annotations[clusterv1beta1.AnnotationSchedulingDisable] != "true":
		annotations[clusterv1beta1.AnnotationSchedulingDisable] = "true"
		annotations[operatorv1.AnnotationHeldByRestore] = "true"
	}
	if len(annotations) > 0 {
		u.SetAnnotations(annotations)
	}
}

// renumber changes the generations that a status observed: those of the saved generation become
// that of the new object, others are removed, since they would be of the future.
func renumber(value any, was, now int64) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			renumber(item, was, now)
		}
	case map[string]any:
		for key, item := range v {
			if key != "observedGeneration" {
				renumber(item, was, now)
				continue
			}
			if v[key] = now; item != was {
				delete(v, key)
			}
		}
	}
}

// settings restores the settings of the hub that do not depend on where it runs.
func (r *restorer) settings(ctx context.Context, u *unstructured.Unstructured) (bool, error) {
	live, err := write.Live(ctx, r.Hub, u)
	if err != nil || live == nil || r.Merge {
		return false, err
	}
	spec := map[string]any{}
	for _, field := range []string{"registrationConfiguration", "workConfiguration", "placementConfiguration", "addOnManagerConfiguration"} {
		if value, found, _ := unstructured.NestedMap(u.Object, "spec", field); found {
			spec[field] = value
		}
	}
	wanted := fleet.Reference(u)
	wanted.Object["spec"] = spec
	_, err = write.Merge(ctx, r.run, r.Hub, wanted)
	return false, err
}

// owners knows the new UIDs of objects that own others.
type owners struct {
	mu      sync.Mutex
	uids    map[owner]types.UID
	late    []late
	dropped int
}

type owner struct{ group, kind, namespace, name string }

// late is an object that gets its owners when they are there.
type late struct {
	kind            kind
	namespace, name string
	owners          []metav1.OwnerReference
}

// add records an object that may own others.
func (o *owners) add(k kind, live *unstructured.Unstructured) {
	switch k.name {
	case kindPlacement, kindAddOn, kindManagementAddOn:
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.uids == nil {
			o.uids = map[owner]types.UID{}
		}
		o.uids[owner{k.resource.Group, k.name, live.GetNamespace(), live.GetName()}] = live.GetUID()
	}
}

// settle gives an object the owners that are there, and drops the others.
func (o *owners) settle(k kind, u *unstructured.Unstructured) {
	all := u.GetOwnerReferences()
	if len(all) == 0 {
		return
	}
	now, wait := o.resolve(u, all)
	u.SetOwnerReferences(now)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(wait) > 0 && k.name == kindAddOn {
		o.late = append(o.late, late{k, u.GetNamespace(), u.GetName(), wait})
		return
	}
	o.dropped += len(wait)
}

// resolve divides owners into those that are there, with their UIDs, and the others.
func (o *owners) resolve(u *unstructured.Unstructured, all []metav1.OwnerReference) (found, others []metav1.OwnerReference) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, ref := range all {
		gv, _ := schema.ParseGroupVersion(ref.APIVersion)
		uid, ok := o.uids[owner{gv.Group, ref.Kind, u.GetNamespace(), ref.Name}]
		if !ok {
			uid, ok = o.uids[owner{gv.Group, ref.Kind, "", ref.Name}]
		}
		if !ok {
			others = append(others, ref)
			continue
		}
		ref.UID = uid
		found = append(found, ref)
	}
	return found, others
}

// adopt gives the add-ons of clusters their owners, unless the hub has done so.
func (r *restorer) adopt(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, l := range r.owners.late {
		group.Go(func() error {
			err := write.Again(func() error { return r.own(ctx, l) })
			return fleet.Explain("restoring the owner of "+strings.Join([]string{l.kind.name, l.namespace + "/" + l.name}, " "), r.Hub, err)
		})
	}
	return group.Wait()
}

func (r *restorer) own(ctx context.Context, l late) error {
	live, err := r.Hub.Client.Resource(l.kind.resource).Namespace(l.namespace).Get(ctx, l.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	has := live.GetOwnerReferences()
	found, others := r.owners.resolve(live, l.owners)
	found = slices.DeleteFunc(found, func(o metav1.OwnerReference) bool {
		return slices.ContainsFunc(has, func(h metav1.OwnerReference) bool { return h.UID == o.UID })
	})
	r.owners.mu.Lock()
	r.owners.dropped += len(others)
	r.owners.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	body := &unstructured.Unstructured{Object: map[string]any{}}
	body.SetOwnerReferences(append(has, found...))
	body.SetResourceVersion(live.GetResourceVersion())
	return r.patch(ctx, l.kind, live, body.Object)
}
