// SPDX-License-Identifier: Apache-2.0

package work

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

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
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
	names, err := o.clusters(ctx)
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
	u := named(cluster, o.Name)
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
		change.Live, _ = write.Masked(write.Clean(live), nil)
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
	q := await.Query{Client: o.Hub.Client, Resource: fleet.ManifestWorks, Namespace: live.GetNamespace(), Name: o.Name, Clock: r.Given.Clock}
	err := await.Gone(ctx, q, live.GetUID(), func(u *unstructured.Unstructured) {
		last = u
		p.See(describeWork(last, ""))
	})
	return r.TimedOut(ctx, p.End(err, "gone"), fleet.Describe(live)+" to be gone",
		func(ctx context.Context) *fleet.Blocker { return (&Departures{Hub: o.Hub}).Blocker(ctx, last) })
}

// FindSet returns the set that DeleteSet would delete, nil when there is none: the one of that
// name in the namespace of the placement. It must be for that placement only, since its works
// are deleted from all of its placements.
func FindSet(ctx context.Context, o Options) (*unstructured.Unstructured, error) {
	live, err := o.liveSet(ctx)
	if live == nil || err != nil {
		return nil, err
	}
	return live, o.checkOnlyFor(live)
}

// liveSet reads the set of the name in the namespace of the placement; nil when there is none,
// or when clusters are selected in another way.
func (o *Options) liveSet(ctx context.Context) (*unstructured.Unstructured, error) {
	others := o.Targets
	others.Placement = ""
	namespace, _, ok := strings.Cut(o.Targets.Placement, "/")
	if !ok || !others.Empty() {
		return nil, nil
	}
	live, err := o.Hub.Client.Resource(fleet.ReplicaSets).Namespace(namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, fleet.Explain("reading manifestworkreplicaset "+namespace+"/"+o.Name, o.Hub, err)
}

// checkOnlyFor refuses a set that has other placements than the given one.
func (o *Options) checkOnlyFor(live *unstructured.Unstructured) error {
	_, asked, _ := strings.Cut(o.Targets.Placement, "/")
	have := placement.PlacementsOf(live)
	others := slices.DeleteFunc(slices.Clone(have), func(name string) bool { return name == asked })
	switch {
	case len(others) == 0:
		return nil
	case len(others) == len(have):
		return fleet.Refuse(fleet.Describe(live)+" is not for placement "+o.Targets.Placement, "its placements are "+strings.Join(have, ", "), NameOwn.With())
	}
	return fleet.Refuse(fleet.Describe(live)+" is for other placements too", "its works would also be deleted from the clusters of "+strings.Join(others, ", "),
		TakePlacement.On(o.Hub, "placement", asked, "name", live.GetName(), "namespace", live.GetNamespace()))
}

// checkRelease checks whether the set may be deleted as requested. Its works are deleted as
// they are at that moment, so with Orphan each of them must leave its objects, and so must the
// template, from which more works may be created.
func (o *Options) checkRelease(ctx context.Context, live *unstructured.Unstructured) error {
	if o.Force {
		return fleet.Refuse(fleet.Describe(live)+" is deleted with its works by the hub", "only single works can be deleted by force", WithoutForce.With())
	}
	if !o.Orphan {
		return nil
	}
	works, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManifestWorks, Labels: labelOf(live)})
	if err != nil {
		return fleet.Explain("listing the works of "+fleet.Describe(live), o.Hub, err)
	}
	taking := 0
	for i := range works {
		if !orphansAll(&works[i], "spec") {
			taking++
		}
	}
	cause := fmt.Sprintf("%d of its %s would", taking, fleet.Many(len(works), "work"))
	switch {
	case !orphansAll(live, "spec", "manifestWorkTemplate"):
		cause = "its template has no delete option orphan"
	case taking == 0:
		return nil
	}
	return fleet.Refuse("deleting "+fleet.Describe(live)+" would remove objects from clusters", cause,
		ApplyOrphaning.On(o.Hub, "work", o.Name, "placement", o.Targets.Placement))
}

// orphansAll reports whether the spec of a work, at path, leaves all objects behind.
func orphansAll(u *unstructured.Unstructured, path ...string) bool {
	policy, _, _ := unstructured.NestedString(u.Object, append(path, "deleteOption", "propagationPolicy")...)
	return policy == string(workv1.DeletePropagationPolicyTypeOrphan)
}

// setLabel is the label value that the works of a set have.
func setLabel(set *unstructured.Unstructured) string { return set.GetNamespace() + "." + set.GetName() }

// labelOf selects the works of a set.
func labelOf(set *unstructured.Unstructured) string {
	return workv1alpha1.LabelManifestWorkReplicaSet + "=" + setLabel(set)
}

// DeleteSet deletes a set that FindSet found. With Wait it returns when its works are gone
// from all clusters. With Orphan it is refused unless every work of the set leaves its
// objects.
func DeleteSet(ctx context.Context, o Options, live *unstructured.Unstructured) (fleet.Change, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	change := fleet.Change{Object: fleet.Reference(live), Action: fleet.Deleted, Live: live}
	if err := o.checkRelease(ctx, live); err != nil {
		return fleet.Change{}, err
	}
	if o.Reads() {
		return change, nil
	}
	if err := fleet.Remove(ctx, o.Hub, live); err != nil {
		return fleet.Change{}, fleet.Explain("deleting "+fleet.Describe(live), o.Hub, err)
	}
	if !o.Wait {
		return change, nil
	}
	var left []*unstructured.Unstructured
	p := r.Place("manifestworkreplicaset/" + live.GetName())
	q := await.Query{Client: o.Hub.Client, Resource: fleet.ReplicaSets, Namespace: live.GetNamespace(), Name: live.GetName(), Clock: r.Given.Clock}
	err := await.Gone(ctx, q, live.GetUID(), func(*unstructured.Unstructured) {})
	if err == nil {
		q = await.Query{Client: o.Hub.Client, Resource: fleet.ManifestWorks, Labels: labelOf(live), Clock: r.Given.Clock}
		err = await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
			if left = items; len(items) > 0 {
				p.See(fleet.Many(len(items), "work") + " left")
			}
			return len(items) == 0, nil
		})
	}
	return change, r.TimedOut(ctx, p.End(err, "gone"), fleet.Describe(live)+" and its works to be gone", func(ctx context.Context) *fleet.Blocker {
		if len(left) > 0 {
			if b := (&Departures{Hub: o.Hub}).Blocker(ctx, left[0]); b != nil {
				b.Cause = fmt.Sprintf("%s left; %s", fleet.Many(len(left), "work"), b.Cause)
				return b
			}
		}
		return &fleet.Blocker{Cause: "the hub has not removed its works", Fix: fleet.HubStatus.On(o.Hub)}
	})
}
