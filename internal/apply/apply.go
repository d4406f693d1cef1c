// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply/ignore"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	// requestTimeout bounds one request, so that a hanging admission webhook holds up one
	// object and not the queue.
	requestTimeout = 15 * time.Second
	// tries is how often an object is read and applied when others write it in between.
	tries = 4
	// ownerManager writes owner references on objects whose content is not ours to apply.
	// It differs from the manager of the content, so that its fields are not mistaken for
	// content of an earlier version.
	ownerManager = workv1.DefaultFieldManager + "-owner"
)

// Served finds the version under which a resource can be read now; internal/discovery
// implements it.
type Served interface {
	Served(context.Context, schema.GroupVersionResource) (schema.GroupVersionResource, bool, error)
}

// Applier writes the objects of one cluster. It keeps no state between calls and is safe
// for concurrent use.
type Applier struct {
	client dynamic.Interface
	// executor writes contents, and is the fallback for every other request that client
	// may not send; nil means client itself.
	executor dynamic.Interface
	served   Served
}

// New returns an Applier that writes with the rights of client.
func New(client dynamic.Interface, served Served) *Applier {
	return &Applier{client: client, served: served}
}

// As returns an Applier that writes the contents of objects with the rights of executor.
// Owner references, deletions and reads keep using a's own rights, and executor's only
// where a's own are refused.
func (a *Applier) As(executor dynamic.Interface) *Applier {
	return &Applier{client: a.client, executor: executor, served: a.served}
}

// sender sends one request and returns the object that the answer holds, if any.
type sender func(context.Context, dynamic.ResourceInterface) (*unstructured.Unstructured, error)

// sendOwn sends a request with our own rights, and again as the executor if we may not
// send it.
func (a *Applier) sendOwn(ctx context.Context, gvr schema.GroupVersionResource, namespace string, send sender) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	live, err := send(ctx, a.client.Resource(gvr).Namespace(namespace))
	if apierrors.IsForbidden(err) && a.executor != nil {
		return send(ctx, a.executor.Resource(gvr).Namespace(namespace))
	}
	return live, err
}

// write sends a request that writes contents, as the executor if there is one.
func (a *Applier) write(ctx context.Context, r Request, send sender) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client := a.client
	if a.executor != nil {
		client = a.executor
	}
	return send(ctx, client.Resource(r.Resource).Namespace(r.Object.GetNamespace()))
}

// Request is one object to bring to the state that a work declares.
type Request struct {
	// Resource is where the object lives.
	Resource schema.GroupVersionResource
	// Object is the manifest, decoded and cleaned. It is not changed.
	Object *unstructured.Unstructured
	// Options control how it is applied.
	Options Options
	// Owner refers to the AppliedManifestWork, with its UID.
	Owner metav1.OwnerReference
	// Live is what Observe found, or nil if there is no object.
	Live *unstructured.Unstructured
	// OwnerOnly leaves the content alone, because another work owns it.
	OwnerOnly bool
	// NeverCreate does not create the object when it is missing, even when it disappears
	// during the write: what ran once must not run again.
	NeverCreate bool
	// NeverReplace refuses a change that would require deleting and recreating the
	// object.
	NeverReplace bool
}

// Result is the outcome of an apply.
type Result struct {
	// Seen is the object afterwards; its UID is empty if there is none.
	Seen Seen
	// Live is the whole object afterwards, nil if there is none. It is large, so drop it
	// before keeping a Result.
	Live *unstructured.Unstructured
	// Merged is the reason why a three-way merge patch was used instead of server-side
	// apply; empty otherwise.
	Merged string
	// Replaced is set when the object was deleted and recreated.
	Replaced bool
}

// resultOf returns the Result of an apply that left the object as live, nil for none.
func resultOf(live *unstructured.Unstructured) Result {
	if live == nil {
		return Result{}
	}
	return Result{Seen: See(live), Live: live}
}

// ConflictError means that other field managers own fields that the work declares without
// force. It resolves when they give the fields up, so there is no reason to retry before
// the object changes.
type ConflictError struct{ Err error }

// Error names the managers and fields.
func (e *ConflictError) Error() string { return e.Err.Error() }

// Unwrap returns the API server's error.
func (e *ConflictError) Unwrap() error { return e.Err }

// DeletingError means that the object is being deleted and waits for its finalizers, so
// it can only be applied after it is gone.
type DeletingError struct{ finalizers []string }

// Error names the finalizers that the object waits for.
func (e *DeletingError) Error() string {
	return fmt.Sprintf("the object is being deleted and waits for the finalizers %s; it is created again when it is gone",
		strings.Join(e.finalizers, ", "))
}

// Observe reads the live object; nil without an error means that there is none.
func (a *Applier) Observe(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	live, err := a.sendOwn(ctx, gvr, namespace, func(ctx context.Context, api dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return api.Get(ctx, name, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err) && isObjectMissing(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", IDOf(gvr, namespace, name), err)
	}
	return live, nil
}

// isObjectMissing distinguishes a missing object from a path that is not served: the API
// server names the object only in the first case.
func isObjectMissing(err error) bool { return detailsOf(err).Name != "" }

// detailsOf returns the details of an API server's error; none for any other error.
func detailsOf(err error) metav1.StatusDetails {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return metav1.StatusDetails{}
	}
	return *status.Status().Details
}

// IsNotServed reports whether err means that there is no such resource path: the
// definition of the kind was removed, or discovery is out of date.
func IsNotServed(err error) bool {
	return apierrors.IsNotFound(err) && !isObjectMissing(err)
}

// Apply brings the object to the state that the request declares. If the object was
// written after it was observed, it is observed again, up to four times.
func (a *Applier) Apply(ctx context.Context, r Request) (Result, error) {
	var result Result
	var err error
	for range tries {
		if r.Live != nil && r.Live.GetDeletionTimestamp() != nil && r.Options.Strategy != workv1.UpdateStrategyTypeReadOnly {
			return resultOf(r.Live), &DeletingError{finalizers: r.Live.GetFinalizers()}
		}
		result, err = a.once(ctx, r)
		if err == nil || !outdated(err) {
			return result, err
		}
		live, readErr := a.Observe(ctx, r.Resource, r.Object.GetNamespace(), r.Object.GetName())
		if readErr != nil {
			return result, readErr
		}
		if same(live, r.Live) {
			return result, err
		}
		r.Live = live
	}
	return result, err
}

// same reports whether two observations found the same state.
func same(a, b *unstructured.Unstructured) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

// outdated reports whether an error may come from an outdated observation.
func outdated(err error) bool {
	if errors.As(err, new(*ConflictError)) {
		return false
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsBadRequest(err) ||
		(apierrors.IsNotFound(err) && isObjectMissing(err))
}

func (a *Applier) once(ctx context.Context, r Request) (Result, error) {
	if r.Live != nil && (r.OwnerOnly || r.Options.Strategy == workv1.UpdateStrategyTypeCreateOnly) {
		return a.own(ctx, r, r.Live)
	}
	if r.Live == nil && r.NeverCreate {
		return Result{}, nil
	}
	switch r.Options.Strategy {
	case workv1.UpdateStrategyTypeReadOnly:
		return resultOf(r.Live), nil
	case workv1.UpdateStrategyTypeCreateOnly:
		return a.create(ctx, r)
	default:
		return a.serverSide(ctx, r)
	}
}

// create creates the object by a plain POST, which fails if the object exists.
func (a *Applier) create(ctx context.Context, r Request) (Result, error) {
	live, err := a.post(ctx, r, r.Object.DeepCopy(), metav1.CreateOptions{FieldManager: workv1.DefaultFieldManager})
	return resultOf(live), err
}

func (a *Applier) post(ctx context.Context, r Request, body *unstructured.Unstructured, o metav1.CreateOptions) (*unstructured.Unstructured, error) {
	body.SetOwnerReferences(wantedOwners(body.GetOwnerReferences(), nil, r.Owner, r.Options.Owned))
	return a.write(ctx, r, func(ctx context.Context, api dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return api.Create(ctx, body, o)
	})
}

// serverSide applies the manifest with the wanted owner references. Fields that an
// earlier agent of the same name wrote by PUT are migrated first; otherwise fields that
// the manifest drops would stay for ever.
func (a *Applier) serverSide(ctx context.Context, r Request) (Result, error) {
	if r.Live == nil && len(r.Options.Ignore) > 0 {
		return a.createIgnoring(ctx, r)
	}
	live, err := a.patchServerSide(ctx, r)
	if err != nil {
		if refusal, ok := refused(err); ok && r.Options.Strategy == workv1.UpdateStrategyTypeUpdate {
			result, err := a.merge(ctx, r)
			result.Merged = refusal
			return result, err
		}
		if replaceable(r, err) {
			return a.replace(ctx, r)
		}
		return Result{}, err
	}
	migrated, err := a.migrate(ctx, r, live)
	if err != nil {
		return resultOf(live), err
	}
	if migrated != nil {
		r.Live = migrated
		if live, err = a.patchServerSide(ctx, r); err != nil {
			return Result{}, err
		}
	}
	return a.own(ctx, r, live)
}

// createIgnoring creates an object some of whose fields are ignored once it exists. If
// the object has been created meanwhile, an apply would set those fields on it, while a
// POST fails.
func (a *Applier) createIgnoring(ctx context.Context, r Request) (Result, error) {
	body, err := r.body()
	if err != nil {
		return Result{}, err
	}
	live, err := a.post(ctx, r, body, metav1.CreateOptions{FieldManager: r.Options.Manager})
	if err != nil {
		return Result{}, err
	}
	migrated, err := a.migrate(ctx, r, live)
	if err != nil || migrated == nil {
		return resultOf(live), err
	}
	return resultOf(migrated), nil
}

// body returns a copy of the manifest as it is to be applied to the live object.
func (r Request) body() (*unstructured.Unstructured, error) {
	if len(r.Options.Ignore) == 0 {
		return r.Object.DeepCopy(), nil
	}
	fields, err := ignore.Parse(r.Options.Ignore)
	if err != nil {
		return nil, err
	}
	return fields.Apply(r.Object, r.Live, r.Options.Manager)
}

func (a *Applier) patchServerSide(ctx context.Context, r Request) (*unstructured.Unstructured, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	body.SetOwnerReferences(wantedOwners(body.GetOwnerReferences(), r.Live, r.Owner, r.Options.Owned))
	if r.Live != nil {
		body.SetUID(r.Live.GetUID())
		body.SetResourceVersion(r.Live.GetResourceVersion())
	}
	live, err := a.write(ctx, r, func(ctx context.Context, api dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return api.Apply(ctx, body.GetName(), body, metav1.ApplyOptions{FieldManager: r.Options.Manager, Force: r.Options.Force})
	})
	// Other conflicts are those of the resource version.
	if apierrors.IsConflict(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return nil, &ConflictError{Err: err}
	}
	return live, err
}

// migrate moves fields that our manager owns by Update to its Apply entry; nil means that
// there were none.
func (a *Applier) migrate(ctx context.Context, r Request, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	manager := r.Options.Manager
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(manager), manager)
	if err != nil || patch == nil {
		// Unreadable managed fields have no owner: there is nothing to take over.
		return nil, nil //nolint:nilerr // see above
	}
	return a.write(ctx, r, func(ctx context.Context, api dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return api.Patch(ctx, live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: manager})
	})
}

// own adds or removes our owner reference where the apply did not: the object is not ours
// to write, or another manager owns the reference.
func (a *Applier) own(ctx context.Context, r Request, live *unstructured.Unstructured) (Result, error) {
	owners, changed := withOwner(live, r.Owner, r.Options.Owned)
	if !changed {
		return resultOf(live), nil
	}
	live, err := a.patchOwners(ctx, r.Resource, live, owners)
	return resultOf(live), err
}

// patchOwners replaces the owner references of exactly this version of the object.
func (a *Applier) patchOwners(
	ctx context.Context, gvr schema.GroupVersionResource, live *unstructured.Unstructured,
	owners []metav1.OwnerReference,
) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "ownerReferences": owners,
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the owners: %w", err)
	}
	return a.sendOwn(ctx, gvr, live.GetNamespace(), func(ctx context.Context, api dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return api.Patch(ctx, live.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: ownerManager})
	})
}
