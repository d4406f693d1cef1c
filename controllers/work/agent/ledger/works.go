// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// manager owns the few fields of works that the agent writes.
const manager = "ocm.work.apply"

var (
	worksResource = schema.GroupVersionResource{
		Group: workv1.GroupName, Version: workv1.GroupVersion.Version, Resource: workv1.ResourceManifestWorks,
	}
	appliedResource = schema.GroupVersionResource{
		Group: workv1.GroupName, Version: workv1.GroupVersion.Version, Resource: workv1.ResourceAppliedManifestWorks,
	}
)

// Work is what stays in memory of a ManifestWork.
type Work struct {
	// Name, UID, Version and Generation are those of its metadata.
	Name       string
	UID        types.UID
	Version    string
	Generation int64
	// Deleting is set once the work has a deletion timestamp.
	Deleting bool
	// Held is set while the work carries our finalizer.
	Held bool
	// Status is a digest of the status on the hub.
	Status digest.Sum
}

// Works are the ManifestWorks of one cluster.
type Works struct {
	namespace  string
	client     dynamic.Interface
	collection *watch.Collection[Work]
	bodies     *bodies
	// Claims records the objects that the works declare.
	Claims *Claims

	mu sync.Mutex
	// written holds the results of our own writes that the watch may not have shown yet,
	// gone the UIDs of works that went when we released them.
	written map[string]Work
	gone    map[string]types.UID
	// unreported are the UIDs of the works that we have held and that nobody has reported yet.
	unreported map[string]types.UID
}

// NewWorks returns the hub side for the namespace of one cluster; pulse is that of the
// hub and may be nil. changed is called with the name of each work that was added,
// changed or removed, and of each work whose claim to an object may have risen.
func NewWorks(client dynamic.Interface, namespace string, pulse *watch.Pulse, log logr.Logger, changed func(name string)) *Works {
	w := &Works{
		namespace: namespace, client: client, bodies: newBodies(maxBodies),
		Claims: newClaims(changed), written: map[string]Work{}, gone: map[string]types.UID{},
		unreported: map[string]types.UID{},
	}
	w.collection = watch.New(watch.Options[Work]{
		Client: client, Resource: worksResource, Namespace: namespace, Pulse: pulse, Log: log,
		Keep: w.keep,
	})
	w.collection.OnChange(func(k reconcile.Key) {
		if _, there := w.collection.Get(k); !there {
			w.bodies.drop(k.Name)
			w.Claims.Release(k.Name)
			w.mu.Lock()
			delete(w.gone, k.Name)
			w.mu.Unlock()
		}
		changed(k.Name)
	})
	return w
}

// Run keeps the works current until ctx ends.
func (w *Works) Run(ctx context.Context) error { return w.collection.Run(ctx) }

// WaitSynced waits for the first complete list.
func (w *Works) WaitSynced(ctx context.Context) error { return w.collection.WaitSynced(ctx) }

// keep reduces a work to what stays of it. A work that cannot be decoded is kept without
// its body, so that only it fails and not the watch.
func (w *Works) keep(u *unstructured.Unstructured) (Work, bool) {
	body, err := typed.FromUnstructured[workv1.ManifestWork](u)
	if err != nil {
		return slim(&workv1.ManifestWork{ObjectMeta: metaOf(u)}), true
	}
	body.ManagedFields = nil
	w.wentBack(body)
	w.bodies.put(body)
	if body.DeletionTimestamp != nil {
		w.Claims.Release(body.Name)
	} else {
		w.Claims.Set(body)
	}
	return slim(body), true
}

// wentBack forgets our own write to a work that the watch shows in an older state than
// before: a hub that was restored from a backup does not know of that write, and it may
// take long until its versions are higher again.
func (w *Works) wentBack(body *workv1.ManifestWork) {
	shown, there := w.collection.Get(reconcile.Key{Namespace: w.namespace, Name: body.Name})
	if !there || !older(body.ResourceVersion, shown.Version) {
		return
	}
	w.bodies.drop(body.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.written, body.Name)
	delete(w.gone, body.Name)
}

func metaOf(u *unstructured.Unstructured) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		Generation: u.GetGeneration(), DeletionTimestamp: u.GetDeletionTimestamp(), Finalizers: u.GetFinalizers(),
	}
}

func slim(m *workv1.ManifestWork) Work {
	return Work{
		Name: m.Name, UID: m.UID, Version: m.ResourceVersion, Generation: m.Generation,
		Deleting: m.DeletionTimestamp != nil,
		Held:     slices.Contains(m.Finalizers, workv1.FinalizerManifestWork),
		Status:   digest.Of(m.Status),
	}
}

// Get returns the newest known version of a work.
func (w *Works) Get(name string) (Work, bool) {
	cached, there := w.collection.Get(reconcile.Key{Namespace: w.namespace, Name: name})
	w.mu.Lock()
	defer w.mu.Unlock()
	own, wrote := w.written[name]
	gone, went := w.gone[name]
	switch {
	case !there, went && gone == cached.UID:
		delete(w.written, name)
		return Work{}, false
	case wrote && own.UID == cached.UID && older(cached.Version, own.Version):
		return own, true
	}
	delete(w.written, name)
	return cached, true
}

// Ending reports whether the hub is deleting a work.
func (w *Works) Ending(name string) bool {
	known, there := w.Get(name)
	return there && known.Deleting
}

// List returns all works as the watch shows them.
func (w *Works) List() []Work { return w.collection.List() }

// Body returns the whole work in the known version, from memory, or else by one GET,
// whose answer may be newer.
func (w *Works) Body(ctx context.Context, known Work) (*workv1.ManifestWork, error) {
	if body := w.bodies.get(known.Name, known.Version); body != nil {
		return body, nil
	}
	return w.Live(ctx, known.Name)
}

// Live reads a work from the hub.
func (w *Works) Live(ctx context.Context, name string) (*workv1.ManifestWork, error) {
	body, err := typed.Get[workv1.ManifestWork](ctx, w.client, worksResource, w.namespace, name)
	if err != nil {
		return nil, err
	}
	w.remember(body)
	return body, nil
}

// Hold adds our finalizer to a work.
func (w *Works) Hold(ctx context.Context, work *workv1.ManifestWork) (*workv1.ManifestWork, error) {
	finalizers := append(slices.Clone(work.Finalizers), workv1.FinalizerManifestWork)
	if len(work.Status.Conditions) == 0 { // one that was reported before is held again
		w.mu.Lock()
		w.unreported[work.Name] = work.UID
		w.mu.Unlock()
	}
	return w.patch(ctx, work, map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
}

// Unreported reports whether a work of that UID was held by this process and nothing was reported
// about it. If the hub does not know it, somebody deleted it at that moment: an API server that has
// seen an object without finalizers deletes it, though it may have got one since.
func (w *Works) Unreported(name string, uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return uid != "" && w.unreported[name] == uid
}

// Forget ends that for a work: something was reported about it, or nothing of it is left.
func (w *Works) Forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.unreported, name)
}

// Release removes our finalizer from a work that is being deleted; with the last finalizer
// it is gone.
func (w *Works) Release(ctx context.Context, work *workv1.ManifestWork) error {
	finalizers := slices.DeleteFunc(slices.Clone(work.Finalizers), func(f string) bool { return f == workv1.FinalizerManifestWork })
	_, err := w.patch(ctx, work, map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	if err == nil && len(finalizers) == 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, there := w.collection.Get(reconcile.Key{Namespace: w.namespace, Name: work.Name}); there {
			w.gone[work.Name] = work.UID
		}
	}
	return err
}

// WriteStatus replaces the status of exactly this version of the work.
func (w *Works) WriteStatus(ctx context.Context, work *workv1.ManifestWork, s workv1.ManifestWorkStatus) (*workv1.ManifestWork, error) {
	reported, err := w.patch(ctx, work, map[string]any{"status": map[string]any{
		"conditions": s.Conditions, "resourceStatus": map[string]any{"manifests": s.ResourceStatus.Manifests},
	}}, "status")
	if err == nil {
		w.Forget(work.Name)
	}
	return reported, err
}

func (w *Works) patch(ctx context.Context, work *workv1.ManifestWork, body map[string]any, subresource ...string) (*workv1.ManifestWork, error) {
	live, err := patch[workv1.ManifestWork](ctx, w.client.Resource(worksResource).Namespace(w.namespace), work, body, subresource...)
	if err != nil {
		return nil, fmt.Errorf("patching manifestwork %s/%s: %w", w.namespace, work.Name, err)
	}
	w.remember(live)
	return live, nil
}

// remember keeps the hub's answer until the watch shows it.
func (w *Works) remember(body *workv1.ManifestWork) {
	body.ManagedFields = nil
	w.bodies.put(body)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written[body.Name] = slim(body)
}

// patch sends a merge patch that is conditional on exactly this version of the object.
func patch[T any](ctx context.Context, api dynamic.ResourceInterface, object metav1.Object, body map[string]any, subresource ...string) (*T, error) {
	metadata, ok := body["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		body["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = object.GetUID(), object.GetResourceVersion()
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	live, err := api.Patch(ctx, object.GetName(), types.MergePatchType, raw, metav1.PatchOptions{FieldManager: manager}, subresource...)
	if err != nil {
		return nil, err
	}
	return typed.FromUnstructured[T](live)
}

// older reports whether version a is certainly before b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
