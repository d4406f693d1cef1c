// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Removal is one object that a work no longer declares.
type Removal struct {
	// Recorded is the object's entry in the AppliedManifestWork. Its UID, if set, must be
	// that of the live object.
	Recorded workv1.AppliedManifestResourceMeta
	// Owner refers to the AppliedManifestWork.
	Owner metav1.OwnerReference
	// Keep leaves the object and removes only our owner reference: the current delete
	// option orphans the object.
	Keep bool
	// Heir, unless its UID is empty, gets our owner reference of an object that is kept: a
	// work whose own write of the object may fail.
	Heir metav1.OwnerReference
	// Claimed deletes an object with the recorded UID although it lacks our owner
	// reference: the delete option was changed back to owning the object, and no pass has
	// restored the reference since.
	Claimed bool
	// Wanted, unless nil, reports whether another work declares the object, which is of this
	// kind: it then loses our owner reference and stays, also if that work has not set its own,
	// or never does.
	Wanted func(kind string) bool
}

// Resource returns the resource of a recorded object.
func Resource(m workv1.AppliedManifestResourceMeta) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: m.Group, Version: m.Version, Resource: m.Resource}
}

// RecordedID returns the ID of a recorded object.
func RecordedID(m workv1.AppliedManifestResourceMeta) ID {
	return IDOf(Resource(m), m.Namespace, m.Name)
}

// installed are the namespaces that Kubernetes or an installation of Open Cluster
// Management needs. Deleting one of them would delete what others have put there.
var installed = []string{
	metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease",
	operatorv1.NamespaceOperator, operatorv1.NamespaceHub, operatorv1.NamespaceAgent, operatorv1.NamespaceAgentAddOn,
}

// Installed reports whether the object is a namespace that is never deleted with a work,
// because it is not the work's alone: it loses our owner reference and stays.
func Installed(id ID) bool {
	return IsNamespace(id) && slices.Contains(installed, id.Name)
}

// IsNamespace reports whether an object is a namespace; everything in a namespace is
// deleted with it.
func IsNamespace(id ID) bool { return id.Group == "" && id.Resource == "namespaces" }

// Remove deletes or orphans an object that a work no longer declares. pending means that
// the object still exists and will be deleted, or (with an error) that this could not be
// determined. An object that is not ours, is owned or declared by another work, or is not
// the recorded one stays and is not pending.
func (a *Applier) Remove(ctx context.Context, r Removal) (pending bool, err error) {
	gvr, served, err := a.served.Served(ctx, Resource(r.Recorded))
	if err != nil {
		return true, fmt.Errorf("removing %s: %w", RecordedID(r.Recorded), err)
	}
	if !served {
		return false, nil
	}
	for range tries {
		pending, again, err := a.removeOnce(ctx, gvr, r)
		if err != nil {
			return true, fmt.Errorf("removing %s: %w", RecordedID(r.Recorded), err)
		}
		if !again {
			return pending, nil
		}
	}
	return true, nil
}

// removeOnce makes one attempt; again is set when the object was written between the read
// and the delete, or when the delete needs confirmation.
func (a *Applier) removeOnce(ctx context.Context, gvr schema.GroupVersionResource, r Removal) (pending, again bool, err error) {
	live, err := a.Observe(ctx, gvr, r.Recorded.Namespace, r.Recorded.Name)
	switch {
	case IsNotServed(err):
		return false, false, nil
	case err != nil:
		return true, false, err
	case live == nil:
		return false, false, nil
	}
	recorded := r.Recorded.UID == "" || r.Recorded.UID == live.GetUID()
	owned := hasOwner(live, r.Owner.UID)
	claimed := r.Claimed && r.Recorded.UID != "" && recorded
	switch {
	case !recorded, !owned && !claimed:
		return false, false, nil
	case r.Keep, sharedBy(live, r.Owner.UID), Installed(RecordedID(r.Recorded)), r.Wanted != nil && r.Wanted(live.GetKind()):
		return a.disown(ctx, gvr, live, r)
	case live.GetDeletionTimestamp() != nil:
		return true, false, nil
	}
	return a.delete(ctx, gvr, live)
}

func (a *Applier) disown(
	ctx context.Context, gvr schema.GroupVersionResource, live *unstructured.Unstructured, r Removal,
) (pending, again bool, err error) {
	owners, changed := withOwner(live, r.Owner, false)
	if !changed {
		return false, false, nil
	}
	if r.Keep && r.Heir.UID != "" && !hasOwner(live, r.Heir.UID) {
		owners = append(owners, r.Heir)
	}
	_, err = a.patchOwners(ctx, gvr, live, owners)
	switch {
	case apierrors.IsConflict(err):
		return true, true, nil
	case apierrors.IsNotFound(err):
		return false, false, nil
	}
	return err != nil, false, err
}

// delete deletes exactly the object that was read, and asks for another read: the object
// may be gone at once, or wait for its finalizers or for its pods to end.
func (a *Applier) delete(ctx context.Context, gvr schema.GroupVersionResource, live *unstructured.Unstructured) (pending, again bool, err error) {
	_, err = a.sendOwn(ctx, gvr, live.GetNamespace(), deletionOf(live))
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return true, true, nil
	}
	return true, false, err
}

// deletionOf sends the deletion of exactly this version of an object.
func deletionOf(live *unstructured.Unstructured) sender {
	return func(ctx context.Context, api dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return nil, api.Delete(ctx, live.GetName(), metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: new(live.GetUID()), ResourceVersion: new(live.GetResourceVersion())},
			PropagationPolicy: new(metav1.DeletePropagationBackground),
		})
	}
}
