// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// FindWorkSet returns the set that DeleteWorkSet would delete, nil when there is
// none: one of that name in the namespace of the placement. It must be for that
// placement and no other, since its works go from all of them.
func FindWorkSet(ctx context.Context, o WorkOptions) (*unstructured.Unstructured, error) {
	live, err := o.liveSet(ctx)
	if live == nil || err != nil {
		return nil, err
	}
	return live, o.onlyFor(live)
}

// liveSet reads the set of the name in the namespace of the placement, nil when
// there is none or clusters are named in another way.
func (o *WorkOptions) liveSet(ctx context.Context) (*unstructured.Unstructured, error) {
	others := o.Targets
	others.Placement = ""
	namespace, _, ok := strings.Cut(o.Targets.Placement, "/")
	if !ok || !others.Empty() {
		return nil, nil
	}
	live, err := o.Hub.Client.Resource(replicaSets).Namespace(namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, explain("reading manifestworkreplicaset "+namespace+"/"+o.Name, o.Hub, err)
}

// onlyFor refuses a set that has other placements than the one that was named.
func (o *WorkOptions) onlyFor(live *unstructured.Unstructured) error {
	_, placement, _ := strings.Cut(o.Targets.Placement, "/")
	have := placementsOf(live)
	others := slices.DeleteFunc(slices.Clone(have), func(name string) bool { return name == placement })
	switch {
	case len(others) == 0:
		return nil
	case len(others) == len(have):
		return refused(describe(live)+" is not for placement "+o.Targets.Placement, "its placements are "+strings.Join(have, ", "),
			"name its own placement, or the clusters of single works by -c")
	}
	return refused(describe(live)+" is for other placements too", "its works would also go from the clusters of "+strings.Join(others, ", "),
		fmt.Sprintf("take %s out of spec.placementRefs: kubectl edit manifestworkreplicasets %s -n %s%s", placement, live.GetName(), live.GetNamespace(), o.Hub.flag()))
}

// checkRelease tells whether the set may be deleted as it is asked for. Its works
// go as they are at that moment, so each of them must leave its objects where
// Orphan is asked for, and the template too, from which more could come.
func (o *WorkOptions) checkRelease(ctx context.Context, live *unstructured.Unstructured) error {
	if o.Force {
		return refused(describe(live)+" is deleted with its works by the hub", "--force is for single works", "leave out --force")
	}
	if !o.Orphan {
		return nil
	}
	works, err := listAll(ctx, o.Hub, query{resource: manifestWorks, labels: workv1alpha1.LabelManifestWorkReplicaSet + "=" + setLabel(live)})
	if err != nil {
		return explain("listing the works of "+describe(live), o.Hub, err)
	}
	taking := 0
	for i := range works {
		if !orphans(&works[i], "spec") {
			taking++
		}
	}
	cause := fmt.Sprintf("%d of its %s would", taking, many(len(works), "work"))
	switch {
	case !orphans(live, "spec", "manifestWorkTemplate"):
		cause = "its template has no delete option orphan"
	case taking == 0:
		return nil
	}
	return refused("deleting "+describe(live)+" would take objects off clusters", cause,
		fmt.Sprintf("kubectl ocm work apply %s -f FILE --placement %s --delete-option orphan --wait%s      then run this again", o.Name, o.Targets.Placement, o.Hub.flag()))
}

// orphans tells whether the spec of a work, at path, leaves all objects behind.
func orphans(u *unstructured.Unstructured, path ...string) bool {
	policy, _, _ := unstructured.NestedString(u.Object, append(path, "deleteOption", "propagationPolicy")...)
	return policy == string(workv1.DeletePropagationPolicyTypeOrphan)
}

// setLabel is the value of the label that the works of a set have.
func setLabel(set *unstructured.Unstructured) string { return set.GetNamespace() + "." + set.GetName() }

// DeleteWorkSet deletes a set that FindWorkSet found. With Wait it returns when
// its works are gone from all clusters. With Orphan it is refused unless every
// work of the set leaves its objects.
func DeleteWorkSet(ctx context.Context, o WorkOptions, live *unstructured.Unstructured) (Change, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	change := Change{Object: reference(live), Action: Deleted, Live: live}
	if err := o.checkRelease(ctx, live); err != nil {
		return Change{}, err
	}
	if o.reads() {
		return change, nil
	}
	if err := remove(ctx, o.Hub, live); err != nil {
		return Change{}, explain("deleting "+describe(live), o.Hub, err)
	}
	if !o.Wait {
		return change, nil
	}
	var left []*unstructured.Unstructured
	p := r.place("manifestworkreplicaset/" + live.GetName())
	err := await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: replicaSets, Namespace: live.GetNamespace(), Name: live.GetName(), Clock: r.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			return len(items) == 0 || items[0].GetUID() != live.GetUID(), nil
		})
	if err == nil {
		err = await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: manifestWorks, Clock: r.common.Clock,
			Labels: workv1alpha1.LabelManifestWorkReplicaSet + "=" + setLabel(live)},
			func(items []*unstructured.Unstructured) (bool, error) {
				if left = items; len(items) > 0 {
					p.see(many(len(items), "work") + " left")
				}
				return len(items) == 0, nil
			})
	}
	return change, r.timedOut(ctx, p.end(err, "gone"), describe(live)+" and its works to be gone", func(ctx context.Context) *blocker {
		if len(left) == 0 {
			return &blocker{cause: "the hub has not removed its works", fix: "kubectl ocm hub status" + o.Hub.flag()}
		}
		going := departures{hub: o.Hub}
		b := going.blocker(ctx, left[0])
		if b == nil {
			return &blocker{cause: "the hub has not removed its works", fix: "kubectl ocm hub status" + o.Hub.flag()}
		}
		b.cause = fmt.Sprintf("%s left; %s", many(len(left), "work"), b.cause)
		return b
	})
}
