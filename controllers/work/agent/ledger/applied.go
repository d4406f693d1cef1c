// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/internal/packed"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Identity selects the AppliedManifestWorks that belong to an agent.
type Identity struct {
	// HubHash is the digest of the hub's address.
	HubHash string
	// AgentID names the agent.
	AgentID string
}

// Name returns the name of the AppliedManifestWork of a work.
func (i Identity) Name(work string) string { return i.HubHash + "-" + work }

// Work returns the work of an AppliedManifestWork of this hub; false for another hub's.
func (i Identity) Work(name string) (string, bool) { return strings.CutPrefix(name, i.HubHash+"-") }

// Applied are the AppliedManifestWorks of this agent or this hub.
type Applied struct {
	// Identity is that of the agent.
	Identity   Identity
	client     dynamic.Interface
	collection *watch.Collection[packedApplied]
	words      packed.Dictionary

	mu sync.Mutex
	// written holds the results of our own writes, gone the UIDs known to be deleted,
	// until the watch shows them.
	written map[string]*workv1.AppliedManifestWork
	gone    map[string]types.UID

	// newest is the highest resourceVersion of the hub in the records.
	newest highest

	// earlier are the names that works of this agent had while the hub had another
	// address, by work.
	earlier map[string][]string
}

var appliedType = metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "AppliedManifestWork"}

// packedApplied is the packed form of one AppliedManifestWork: it takes a third of the
// memory, and there may be thousands, each with many objects.
type packedApplied struct {
	name, data string
	// counts is its contribution to Count.
	counts Count
}

// Count counts the AppliedManifestWorks of the agent that are not being deleted, and
// those of them whose works are missed on the hub, or whose removals are held.
type Count struct{ Known, Missed, Held int }

func (c *Count) add(o Count) {
	c.Known += o.Known
	c.Missed += o.Missed
	c.Held += o.Held
}

func (i Identity) count(work *workv1.AppliedManifestWork) Count {
	if work.Spec.AgentID != i.AgentID || work.DeletionTimestamp != nil {
		return Count{}
	}
	out := Count{Known: 1}
	if work.Status.EvictionStartTime != nil {
		out.Missed = 1
	}
	if work.Annotations[workv1.AnnotationRemovalHeld] != "" {
		out.Held = 1
	}
	return out
}

// NewApplied returns the managed side. changed is called with the name of each
// AppliedManifestWork that was added, changed or removed.
func NewApplied(client dynamic.Interface, identity Identity, log logr.Logger, changed func(name string)) *Applied {
	a := &Applied{
		Identity: identity, client: client,
		written: map[string]*workv1.AppliedManifestWork{}, gone: map[string]types.UID{}, earlier: map[string][]string{},
	}
	a.collection = watch.New(watch.Options[packedApplied]{
		Client: client, Resource: appliedResource, Log: log,
		Keep: func(u *unstructured.Unstructured) (packedApplied, bool) {
			work, err := typed.FromUnstructured[workv1.AppliedManifestWork](u)
			if err != nil || (work.Spec.AgentID != identity.AgentID && work.Spec.HubHash != identity.HubHash) {
				return packedApplied{}, false
			}
			a.newest.observe(identity, readIntent(work))
			return packedApplied{name: work.Name, data: a.words.Pack(work), counts: identity.count(work)}, true
		},
	})
	a.collection.OnChange(func(k reconcile.Key) {
		if _, there := a.collection.Get(k); !there {
			a.mu.Lock()
			delete(a.written, k.Name)
			delete(a.gone, k.Name)
			a.mu.Unlock()
		}
		changed(k.Name)
		for _, earlier := range a.predecessors(k.Name) {
			changed(earlier)
		}
	})
	return a
}

// predecessors returns the names of the work's AppliedManifestWorks from before the hub
// had this address; they wait for the one of that name. Names at another address are
// recorded in passing.
func (a *Applied) predecessors(name string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if work, ours := a.Identity.Work(name); ours {
		return slices.Clone(a.earlier[work])
	}
	known, there := a.cached(name)
	for work, names := range a.earlier {
		a.earlier[work] = slices.DeleteFunc(names, func(n string) bool { return n == name })
		if len(a.earlier[work]) == 0 {
			delete(a.earlier, work)
		}
	}
	if there {
		work := known.Spec.ManifestWorkName
		a.earlier[work] = append(a.earlier[work], name)
	}
	return nil
}

// Successor returns the AppliedManifestWork at this address of the hub for a work whose
// earlier one is of another address; nil if there is none.
func (a *Applied) Successor(earlier *workv1.AppliedManifestWork) *workv1.AppliedManifestWork {
	now := a.Get(a.Identity.Name(earlier.Spec.ManifestWorkName))
	if now == nil || now.Name == earlier.Name || now.DeletionTimestamp != nil || earlier.Spec.AgentID != now.Spec.AgentID {
		return nil
	}
	return now
}

// Holds reports whether a record names exactly that object, by its UID.
func Holds(record *workv1.AppliedManifestWork, object workv1.AppliedManifestResourceMeta) bool {
	return record != nil && object.UID != "" && slices.ContainsFunc(record.Status.AppliedResources, func(has workv1.AppliedManifestResourceMeta) bool {
		return has.UID == object.UID && has.Group == object.Group && has.Resource == object.Resource
	})
}

// Run keeps the cache current until ctx ends.
func (a *Applied) Run(ctx context.Context) error { return a.collection.Run(ctx) }

// WaitSynced waits for the first complete list.
func (a *Applied) WaitSynced(ctx context.Context) error { return a.collection.WaitSynced(ctx) }

// cached returns what the watch shows.
func (a *Applied) cached(name string) (*workv1.AppliedManifestWork, bool) {
	kept, there := a.collection.Get(reconcile.Key{Name: name})
	if !there {
		return nil, false
	}
	work := &workv1.AppliedManifestWork{TypeMeta: appliedType}
	a.words.Unpack(kept.data, work)
	work.Name = kept.name
	return work, true
}

// Get returns the newest known version, nil if there is none. It must not be changed. It
// is unpacked on every call, so callers that need it twice should keep it.
func (a *Applied) Get(name string) *workv1.AppliedManifestWork {
	cached, there := a.cached(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	own := a.written[name]
	if there && a.gone[name] == cached.UID {
		return own
	}
	if there && own != nil && own.UID == cached.UID && !older(cached.ResourceVersion, own.ResourceVersion) {
		delete(a.written, name)
		return cached
	}
	return cmp.Or(own, cached)
}

// Names returns all known names, in no particular order. Those that were just created are among
// them, even if the watch does not show them yet.
func (a *Applied) Names() []string {
	var out []string
	for _, kept := range a.collection.List() {
		out = append(out, kept.name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name := range a.written {
		if !a.shows(name) {
			out = append(out, name)
		}
	}
	return out
}

// shows reports whether the watch shows a record of that name.
func (a *Applied) shows(name string) bool {
	_, there := a.collection.Get(reconcile.Key{Name: name})
	return there
}

// Count counts all that are known, without unpacking them.
func (a *Applied) Count() Count {
	all := a.collection.List()
	a.mu.Lock()
	defer a.mu.Unlock()
	var out Count
	for _, kept := range all {
		if a.written[kept.name] == nil {
			out.add(kept.counts)
		}
	}
	for _, own := range a.written {
		out.add(a.Identity.count(own))
	}
	return out
}

// Live reads one from the API server; nil without error means that it is gone.
func (a *Applied) Live(ctx context.Context, name string) (*workv1.AppliedManifestWork, error) {
	live, err := typed.Get[workv1.AppliedManifestWork](ctx, a.client, appliedResource, "", name)
	switch {
	case apierrors.IsNotFound(err):
		if known := a.Get(name); known != nil {
			a.forget(name, known.UID)
		}
		return nil, nil
	case err != nil:
		return nil, err
	}
	return a.remember(live), nil
}

// Create creates the AppliedManifestWork of a work, with its finalizer, the work's labels,
// and the list of the objects that are about to be written, where that fits. If it exists
// already, it is read for the next pass: what it lists was not considered in this one, and
// must not be taken off it.
func (a *Applied) Create(
	ctx context.Context, work *workv1.ManifestWork, objects []workv1.AppliedManifestResourceMeta,
) (*workv1.AppliedManifestWork, error) {
	intent, err := intentOf(objects)
	if err != nil {
		return nil, err
	}
	applied := &workv1.AppliedManifestWork{
		TypeMeta: appliedType,
		ObjectMeta: metav1.ObjectMeta{
			Name: a.Identity.Name(work.Name), Labels: work.Labels,
			Finalizers:  []string{workv1.FinalizerAppliedManifestWork},
			Annotations: map[string]string{workv1.AnnotationLastSeen: SightingOf(work).String()},
		},
		Spec: workv1.AppliedManifestWorkSpec{
			HubHash: a.Identity.HubHash, AgentID: a.Identity.AgentID, ManifestWorkName: work.Name,
		},
	}
	maps.Copy(applied.Annotations, map[string]string{
		workv1.AnnotationExecutor: noted(applied, work), workv1.AnnotationCompleteManifests: strings.Join(a.Inherited(work.Name), " "),
		workv1.AnnotationIntent: intent,
	})
	maps.DeleteFunc(applied.Annotations, func(_, value string) bool { return value == "" })
	u, err := typed.ToUnstructured(applied)
	if err != nil {
		return nil, err
	}
	created, err := a.client.Resource(appliedResource).Create(ctx, u, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		if _, err := a.Live(ctx, applied.Name); err != nil {
			return nil, err
		}
		err = apierrors.NewConflict(appliedResource.GroupResource(), applied.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("creating appliedmanifestwork %s: %w", applied.Name, err)
	}
	live, err := typed.FromUnstructured[workv1.AppliedManifestWork](created)
	if err != nil {
		return nil, err
	}
	return a.remember(live), nil
}

// Inherited returns the marks of complete manifests on the AppliedManifestWorks that this
// agent has for the work from before the hub had this address.
func (a *Applied) Inherited(work string) []string {
	var out []string
	for _, name := range a.predecessors(a.Identity.Name(work)) {
		if earlier := a.Get(name); earlier != nil && earlier.Spec.AgentID == a.Identity.AgentID {
			out = append(out, strings.Fields(earlier.Annotations[workv1.AnnotationCompleteManifests])...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Inhabited returns the message that a namespace stays because works of this agent other
// than except have objects in it and are not being deleted: a work that declares a
// namespace must not delete their objects with it. It is empty if there are none. ending
// reports whether the hub is deleting a work, which its record may not show yet.
func (a *Applied) Inhabited(namespace, except string, ending func(work string) bool) string {
	var tenants []string
	for _, name := range a.Names() {
		record := a.Get(name)
		if record == nil || a.Identity.count(record).Known == 0 {
			continue // it is another agent's, or on its way out
		}
		if record.Spec.ManifestWorkName == except || ending(record.Spec.ManifestWorkName) {
			continue
		}
		if slices.ContainsFunc(record.Status.AppliedResources, func(r workv1.AppliedManifestResourceMeta) bool { return r.Namespace == namespace }) {
			tenants = append(tenants, record.Spec.ManifestWorkName)
		}
	}
	if len(tenants) == 0 {
		return ""
	}
	slices.Sort(tenants)
	tenants = slices.Compact(tenants)
	const named = 3
	who := strings.Join(tenants[:min(len(tenants), named)], ", ")
	if len(tenants) > named {
		who += " and others"
	}
	return "namespace " + namespace + " stays, because it holds objects of other works: " + who
}

// noted returns the executor to record on an AppliedManifestWork; it stays unchanged
// while the work names an invalid executor.
func noted(applied *workv1.AppliedManifestWork, work *workv1.ManifestWork) string {
	account, err := executor.Of(work.Spec.Executor)
	if err != nil {
		return applied.Annotations[workv1.AnnotationExecutor]
	}
	return account.User()
}

// Adopt adds our finalizer and identity where they are missing, and the annotation of the
// work's executor.
func (a *Applied) Adopt(ctx context.Context, applied *workv1.AppliedManifestWork, work *workv1.ManifestWork) (*workv1.AppliedManifestWork, error) {
	finalizers := slices.Clone(applied.Finalizers)
	if !slices.Contains(finalizers, workv1.FinalizerAppliedManifestWork) {
		finalizers = append(finalizers, workv1.FinalizerAppliedManifestWork)
	}
	note := notes(map[string]string{workv1.AnnotationExecutor: noted(applied, work)})
	return a.patch(ctx, applied, map[string]any{
		"metadata": map[string]any{"finalizers": finalizers, "annotations": note},
		"spec": map[string]any{
			"hubHash": a.Identity.HubHash, "agentID": a.Identity.AgentID, "manifestWorkName": work.Name,
		},
	})
}

// AdoptedFor reports whether it carries our finalizer and identity, and the annotation of
// the work's executor.
func (a *Applied) AdoptedFor(applied *workv1.AppliedManifestWork, work *workv1.ManifestWork) bool {
	return a.Adopted(applied) && applied.Annotations[workv1.AnnotationExecutor] == noted(applied, work)
}

// Adopted reports whether it carries our finalizer and identity.
func (a *Applied) Adopted(applied *workv1.AppliedManifestWork) bool {
	work, _ := a.Identity.Work(applied.Name)
	return slices.Contains(applied.Finalizers, workv1.FinalizerAppliedManifestWork) &&
		applied.Spec == workv1.AppliedManifestWorkSpec{HubHash: a.Identity.HubHash, AgentID: a.Identity.AgentID, ManifestWorkName: work}
}

// Sort brings a list of objects into the order in which it is recorded.
func Sort(list []workv1.AppliedManifestResourceMeta) {
	slices.SortFunc(list, func(a, b workv1.AppliedManifestResourceMeta) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Record replaces the list of objects, and the eviction start time. An empty list also ends
// the list of the annotation, which would count instead.
func (a *Applied) Record(
	ctx context.Context, applied *workv1.AppliedManifestWork, resources []workv1.AppliedManifestResourceMeta,
	evicting *time.Time,
) (*workv1.AppliedManifestWork, error) {
	if len(resources) == 0 && intends(applied) {
		var err error
		if applied, err = a.Annotate(ctx, applied, map[string]string{workv1.AnnotationIntent: ""}); err != nil {
			return nil, err
		}
	}
	resources = append([]workv1.AppliedManifestResourceMeta{}, resources...) // an empty list, not null
	status := map[string]any{"appliedResources": resources, "evictionStartTime": nil}
	if evicting != nil {
		status["evictionStartTime"] = metav1.NewTime(*evicting)
	}
	return a.patch(ctx, applied, map[string]any{"status": status}, "status")
}

// Annotate sets annotations, and removes those whose value is empty.
func (a *Applied) Annotate(ctx context.Context, applied *workv1.AppliedManifestWork, values map[string]string) (*workv1.AppliedManifestWork, error) {
	return a.patch(ctx, applied, map[string]any{"metadata": map[string]any{"annotations": notes(withoutIntent(applied, values))}})
}

// notes returns the merge patch of annotations; an empty value removes one.
func notes(values map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range values {
		if out[key] = value; value == "" {
			out[key] = nil
		}
	}
	return out
}

// Release removes our finalizer. gone is set when the API server has removed the
// AppliedManifestWork with it.
func (a *Applied) Release(ctx context.Context, applied *workv1.AppliedManifestWork) (gone bool, err error) {
	finalizers := slices.DeleteFunc(slices.Clone(applied.Finalizers), func(f string) bool { return f == workv1.FinalizerAppliedManifestWork })
	live, err := a.patch(ctx, applied, map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	if reconcile.IgnoreNotFound(err) != nil {
		return false, err
	}
	if err == nil && (len(live.Finalizers) > 0 || live.DeletionTimestamp == nil) {
		return false, nil
	}
	a.forget(applied.Name, applied.UID)
	return true, nil
}

// Delete deletes exactly this one; it stays until its finalizer is released.
func (a *Applied) Delete(ctx context.Context, applied *workv1.AppliedManifestWork) error {
	err := a.client.Resource(appliedResource).Delete(ctx, applied.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &applied.UID}, PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	switch {
	case apierrors.IsNotFound(err):
		a.forget(applied.Name, applied.UID)
	case err != nil:
		return fmt.Errorf("deleting appliedmanifestwork %s: %w", applied.Name, err)
	}
	return nil
}

func (a *Applied) patch(
	ctx context.Context, applied *workv1.AppliedManifestWork, body map[string]any, subresource ...string,
) (*workv1.AppliedManifestWork, error) {
	live, err := patch[workv1.AppliedManifestWork](ctx, a.client.Resource(appliedResource), applied, body, subresource...)
	if apierrors.IsNotFound(err) {
		a.forget(applied.Name, applied.UID)
	}
	if err != nil {
		return nil, fmt.Errorf("patching appliedmanifestwork %s: %w", applied.Name, err)
	}
	return a.remember(live), nil
}

func (a *Applied) remember(live *workv1.AppliedManifestWork) *workv1.AppliedManifestWork {
	live.ManagedFields = nil
	readIntent(live)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written[live.Name] = live
	return live
}

// forget records that the one with that UID is deleted, unless the watch already shows
// it.
func (a *Applied) forget(name string, uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.written, name)
	if cached, there := a.cached(name); there && cached.UID == uid {
		a.gone[name] = uid
	}
}
