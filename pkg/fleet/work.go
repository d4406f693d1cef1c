// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// workParallel bounds how many clusters are written to at the same time.
const workParallel = 16

// WorkOptions say what to send to which clusters.
type WorkOptions struct {
	Common
	// Hub is the hub.
	Hub *Cluster
	// Name of the work, the same on every cluster.
	Name string
	// Manifests are its objects, as ReadManifests returns them.
	Manifests []*unstructured.Unstructured
	// Targets are the clusters.
	Targets Targets
	// Orphan leaves the objects on the cluster when the work is deleted.
	Orphan bool
	// UpdateStrategy is one of UpdateStrategies, for all objects; empty leaves
	// the default, which is update.
	UpdateStrategy string
	// Feedback are values to read back from the objects, each NAME=JSONPATH.
	Feedback []string
	// Rollout is all, progressive or per-group, for ApplyWorkSet; empty means
	// all. MaxConcurrency is how many clusters, or how many percent of them, a
	// progressive one changes at a time.
	Rollout, MaxConcurrency string
	// Prune deletes the work from clusters that are not meant any more, where this
	// library has sent it. A set needs no such thing: the hub does it.
	Prune bool
	// Executor is the ServiceAccount of the cluster with whose rights the objects
	// are applied, NAMESPACE/NAME; empty for the agent itself.
	Executor string
	// Spoke is the one cluster that is meant itself, where it can be asked; nil
	// otherwise.
	Spoke *Cluster
	// Force writes works that belong to somebody else, or deletes works whose
	// agent does not.
	Force bool
}

// WorkDone is what happened on one cluster.
type WorkDone struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`
	// Change is the work there.
	Change
	// Failure is why it failed, if it did.
	Failure string `json:"error,omitempty"`

	err error
}

// MarshalJSON writes the cluster beside the object and the action.
func (d WorkDone) MarshalJSON() ([]byte, error) {
	out := map[string]any{"cluster": d.Cluster}
	if d.Object != nil {
		out["object"], out["action"] = d.Object.Object, d.Action
	}
	if d.Failure != "" {
		out["error"] = d.Failure
	}
	return json.Marshal(out)
}

// WorkResult is what happened on all clusters, by name.
type WorkResult struct {
	Clusters []WorkDone `json:"clusters"`
	Items    []Change   `json:"items"`
}

// ApplyWork creates or updates a work on clusters. With Wait it returns when the
// agents have applied it and its objects exist. Clusters are independent; the
// error is of kind Partial when only some failed.
func ApplyWork(ctx context.Context, o WorkOptions) (WorkResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if err := checkWorkName(o.Name); err != nil {
		return WorkResult{}, err
	}
	if err := o.checkSpec(); err != nil {
		return WorkResult{}, err
	}
	names, err := o.Targets.Resolve(ctx, o.Hub)
	if err != nil {
		return WorkResult{}, err
	}
	result, err := each(names, func(name string) (Change, error) {
		u := o.object(name)
		change, err := o.applyTo(ctx, r, u)
		if err != nil || !o.Wait || o.reads() {
			return change, err
		}
		return change, o.awaitApplied(ctx, r, u)
	})
	if err != nil || !o.Prune {
		return result, err
	}
	return o.prune(ctx, r, result)
}

func checkWorkName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return usage(fmt.Sprintf("%q cannot be the name of a work", name), problems[0], "for example web")
	}
	return nil
}

// object is the work for one cluster.
func (o *WorkOptions) object(cluster string) *unstructured.Unstructured {
	u := named(workv1.GroupVersion.WithKind("ManifestWork"), cluster, o.Name)
	u.Object["spec"] = o.spec()
	return u
}

func (o *WorkOptions) applyTo(ctx context.Context, r *run, u *unstructured.Unstructured) (Change, error) {
	live, err := r.live(ctx, o.Hub, u)
	if err != nil {
		return Change{}, explain("reading "+describe(u), o.Hub, err)
	}
	if live != nil && !o.Force {
		if owner := ownerOf(live); owner != "" {
			return Change{}, refused(describe(u)+" belongs to "+owner, "its owner would undo the change", "use another name, or add --force")
		}
	}
	if live != nil && live.GetDeletionTimestamp() != nil {
		return Change{}, beingDeleted(live)
	}
	change, err := r.applyOne(ctx, o.Hub, u)
	return change, explain("applying "+describe(u), o.Hub, err)
}

// beingDeleted is the error for a write to an object that is on its way out.
func beingDeleted(live *unstructured.Unstructured) error {
	return &Error{Message: describe(live) + " is being deleted", Cause: "finalizers: " + strings.Join(live.GetFinalizers(), ", "), Fix: "wait until it is gone, then run this again"}
}

// ownerOf names what a work was made by, "" when a person did.
func ownerOf(u *unstructured.Unstructured) string {
	labels := u.GetLabels()
	if set := labels["work.open-cluster-management.io/manifestworkreplicaset"]; set != "" {
		return "replicaset " + strings.Replace(set, ".", "/", 1)
	}
	if addon := labels[clusterv1.LabelAddOnName]; addon != "" {
		return "addon " + addon
	}
	for _, ref := range u.GetOwnerReferences() {
		return strings.ToLower(ref.Kind) + " " + ref.Name
	}
	return ""
}

// each runs do for every cluster at the same time and collects what happened.
func each(names []string, do func(string) (Change, error)) (WorkResult, error) {
	return eachOf(names, func(i int) (Change, error) { return do(names[i]) })
}

// eachOf is each where a cluster may be named more than once.
func eachOf(names []string, do func(int) (Change, error)) (WorkResult, error) {
	done := make([]WorkDone, len(names))
	var group errgroup.Group
	var mu sync.Mutex
	group.SetLimit(workParallel)
	for i, name := range names {
		group.Go(func() error {
			change, err := do(i)
			mu.Lock()
			defer mu.Unlock()
			done[i] = WorkDone{Cluster: name, Change: change, err: err}
			switch {
			case errors.Is(err, context.Canceled):
				done[i].Failure = "interrupted"
			case err != nil:
				done[i].Failure = err.Error()
			}
			return nil
		})
	}
	_ = group.Wait()
	result := WorkResult{Clusters: done}
	var failures []error
	for _, d := range done {
		if d.err != nil {
			failures = append(failures, d.err)
		}
		if d.Object != nil {
			result.Items = append(result.Items, d.Change)
		}
	}
	return result, outcome(failures, len(names))
}

// awaitApplied waits until the agent has applied what is there now.
func (o *WorkOptions) awaitApplied(ctx context.Context, r *run, u *unstructured.Unstructured) error {
	cluster := u.GetNamespace()
	var last *unstructured.Unstructured
	p := r.place(cluster)
	err := await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: manifestWorks, Namespace: cluster, Name: o.Name, Clock: r.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return false, &Error{Message: describe(u) + " was deleted while it was waited for", Fix: "run this again"}
			}
			last = items[0]
			for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
				if !current(last, kind) {
					p.see(workSight(last, kind))
					return false, nil
				}
			}
			return true, nil
		})
	return r.timedOut(ctx, p.end(err, "available"), "manifestwork/"+o.Name+" on "+cluster, func(context.Context) *blocker {
		if last != nil && observed(last, workv1.ConditionApplied) {
			if b := workBlocker(last); b != nil {
				return b
			}
		}
		return &blocker{cause: "the agent of " + cluster + " has not answered", fix: "kubectl ocm cluster list" + o.Hub.flag()}
	})
}

// observed tells whether a condition is about the spec as it is now.
func observed(u *unstructured.Unstructured, kind string) bool {
	c := apimeta.FindStatusCondition(conditionsOf(u), kind)
	return c != nil && c.ObservedGeneration >= u.GetGeneration()
}

// current tells whether a condition is True for the spec as it is now.
func current(u *unstructured.Unstructured, kind string) bool {
	c := apimeta.FindStatusCondition(conditionsOf(u), kind)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= u.GetGeneration()
}

// workBlocker tells which object of a work is not well.
func workBlocker(u *unstructured.Unstructured) *blocker {
	manifests, _, _ := unstructured.NestedSlice(u.Object, "status", "resourceStatus", "manifests")
	for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
		for _, item := range manifests {
			m, ok := item.(map[string]any)
			if !ok {
				continue
			}
			c := apimeta.FindStatusCondition(conditionsOf(&unstructured.Unstructured{Object: map[string]any{"status": m}}), kind)
			if c == nil || c.Status == metav1.ConditionTrue {
				continue
			}
			what, _, _ := unstructured.NestedString(m, "resourceMeta", "kind")
			name, _, _ := unstructured.NestedString(m, "resourceMeta", "name")
			return &blocker{cause: fmt.Sprintf("%s/%s: %s=%s: %s", strings.ToLower(what), name, c.Type, c.Status, oneLine(c.Message)), since: c.LastTransitionTime.Time}
		}
	}
	return nil
}
