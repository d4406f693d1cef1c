// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var worksResource = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)

// Work is what is remembered of the ManifestWork of a ClusterPermission.
type Work struct {
	// Permission is its ClusterPermission, Owner the UID of that; empty if the work has lost its
	// owner, as it does when a hub is restored from a backup.
	Permission reconcile.Key
	Owner      types.UID
	// Label is the value of the label that marks it.
	Label string
	// Name, UID and Version are those of the object.
	Name    string
	UID     types.UID
	Version string
	// Created is when it was created; Deleting is true while it is being deleted.
	Created  time.Time
	Deleting bool
	// Spec is the digest of its spec. Kept is true when it is about to be deleted, and was made
	// to leave its objects on the cluster.
	Spec digest.Sum
	Kept bool
	// Applied is its condition Applied, or nil if that is not about its current spec.
	Applied *metav1.Condition
	// Objects are the conditions Applied and Available of each object that was reported.
	Objects map[ref]Report
}

// ref identifies an object of a work; kind is enough, because all are of one group.
type ref struct{ kind, namespace, name string }

// Report is what the agent says about one object.
type Report struct {
	// Applied and Available are its conditions, or nil.
	Applied, Available *metav1.Condition
}

// keep reduces a ManifestWork to what is remembered; false for one that is not of a
// ClusterPermission.
func keep(u *unstructured.Unstructured) (Work, bool) {
	name, uid, ok := ownerOf(u)
	if !ok {
		return Work{}, false
	}
	w, err := typed.FromUnstructured[workv1.ManifestWork](u)
	if err != nil {
		return Work{}, false
	}
	spec, err := digestOf(w.Spec)
	if err != nil {
		return Work{}, false
	}
	out := Work{
		Permission: reconcile.Key{Namespace: w.Namespace, Name: strings.Clone(name)}, Owner: uid,
		Label: w.Labels[permissionv1alpha1.LabelClusterPermission], Name: w.Name, UID: w.UID, Version: w.ResourceVersion,
		Created: w.CreationTimestamp.Time, Deleting: w.DeletionTimestamp != nil, Spec: spec, Objects: map[ref]Report{},
	}
	_, out.Kept = w.Annotations[workv1.AnnotationKept]
	if c := apimeta.FindStatusCondition(w.Status.Conditions, workv1.ConditionApplied); c != nil && c.ObservedGeneration == w.Generation {
		out.Applied = c
	}
	for i := range w.Status.ResourceStatus.Manifests {
		m := &w.Status.ResourceStatus.Manifests[i]
		out.Objects[ref{m.ResourceMeta.Kind, m.ResourceMeta.Namespace, m.ResourceMeta.Name}] = Report{
			Applied:   apimeta.FindStatusCondition(m.Conditions, workv1.ConditionApplied),
			Available: apimeta.FindStatusCondition(m.Conditions, workv1.ConditionAvailable),
		}
	}
	return out, true
}

// ownerOf returns the name and the UID of the ClusterPermission that a work is of: that which
// controls it or, if nothing does, the one after which it was named.
func ownerOf(u *unstructured.Unstructured) (name string, uid types.UID, ok bool) {
	if c := metav1.GetControllerOf(u); c != nil {
		ok = c.Kind == "ClusterPermission" && strings.HasPrefix(c.APIVersion, permissionv1alpha1.GroupName+"/")
		return c.Name, c.UID, ok
	}
	label := u.GetLabels()[permissionv1alpha1.LabelClusterPermission]
	name, ok = strings.CutSuffix(u.GetName(), suffix(label))
	return name, "", ok && label != "" && name != ""
}

// digestOf returns the same digest for specs that mean the same, however they are formatted.
func digestOf(spec workv1.ManifestWorkSpec) (digest.Sum, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return digest.Sum{}, fmt.Errorf("encoding the spec of a manifestwork: %w", err)
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return digest.Sum{}, fmt.Errorf("reading the spec of a manifestwork: %w", err)
	}
	return digest.Of(plain), nil
}

// workName returns the name of a new work.
func workName(cp *permissionv1alpha1.ClusterPermission) string {
	return cp.Name + suffix(string(cp.UID))
}

func suffix(uid string) string { return "-" + uid[:min(5, len(uid))] }

// works holds the marked ManifestWorks by their ClusterPermission.
type works struct {
	*watch.Collection[Work]
	wake func(reconcile.Key)

	mu sync.Mutex
	// seen is what was last known of each work, and byOwner the works of an owner.
	seen    map[reconcile.Key]Work
	byOwner map[string][]reconcile.Key
}

func newWorks(client dynamic.Interface, wake func(reconcile.Key)) *works {
	w := &works{wake: wake, seen: map[reconcile.Key]Work{}, byOwner: map[string][]reconcile.Key{}}
	w.Collection = watch.New(watch.Options[Work]{
		Client: client, Resource: worksResource, LabelSelector: permissionv1alpha1.LabelClusterPermission, Keep: keep,
	})
	w.OnChange(w.changed)
	return w
}

// changed records whose work it is, and wakes the ClusterPermission that it was or is of.
func (w *works) changed(key reconcile.Key) {
	now, there := w.Get(key)
	w.mu.Lock()
	before, had := w.seen[key]
	if had {
		owner := before.owner()
		w.byOwner[owner] = slices.DeleteFunc(w.byOwner[owner], func(k reconcile.Key) bool { return k == key })
		if len(w.byOwner[owner]) == 0 {
			delete(w.byOwner, owner)
		}
		delete(w.seen, key)
	}
	if there {
		w.seen[key] = now
		w.byOwner[now.owner()] = append(w.byOwner[now.owner()], key)
	}
	w.mu.Unlock()
	if had && (!there || before.Permission != now.Permission) {
		w.wake(before.Permission)
	}
	if there {
		w.wake(now.Permission)
	}
}

// owner identifies the owner of a work: by its UID or, if that is lost, by its name.
func (w Work) owner() string {
	if w.Owner == "" {
		return w.Permission.String()
	}
	return string(w.Owner)
}

// of returns the works of a ClusterPermission, the oldest first, and those that have lost their
// owner last.
func (w *works) of(cp *permissionv1alpha1.ClusterPermission) []Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Work
	for _, key := range slices.Concat(w.byOwner[string(cp.UID)], w.byOwner[reconcile.KeyOf(cp).String()]) {
		out = append(out, w.seen[key])
	}
	slices.SortFunc(out, func(a, b Work) int {
		return cmp.Or(strings.Compare(string(b.Owner), string(a.Owner)), a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
	})
	return out
}
