// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// accept accepts the clusters that were accepted: now that everything is there, agents may see it.
func (r *restorer) accept(ctx context.Context) error {
	r.run.Step("accepting clusters")
	n, err := r.letGo(ctx, kindCluster, map[string]any{"spec": map[string]any{"hubAcceptsClient": true}})
	if err == nil {
		r.run.Done(fleet.AreMany(n, "cluster") + " accepted now")
	}
	return err
}

// held calls do with the objects of a kind that a restore holds.
func (r *restorer) held(ctx context.Context, k kind, do func(*unstructured.Unstructured)) error {
	err := each(ctx, r.Hub, k, func(u *unstructured.Unstructured) error {
		if u.GetAnnotations()[operatorv1.AnnotationHeldByRestore] == "true" {
			do(u)
		}
		return nil
	})
	return fleet.Explain("listing "+k.resource.Resource, r.Hub, err)
}

// letGo patches all objects of a kind that a restore holds, and takes the mark from them.
func (r *restorer) letGo(ctx context.Context, name string, fields map[string]any) (int, error) {
	k := order[slices.IndexFunc(order, func(k kind) bool { return k.name == name })]
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	n := 0
	err := r.held(ctx, k, func(u *unstructured.Unstructured) {
		n++
		group.Go(func() error {
			body := (&unstructured.Unstructured{Object: fields}).DeepCopy()
			annotations, _, _ := unstructured.NestedMap(body.Object, "metadata", "annotations")
			if annotations == nil {
				annotations = map[string]any{}
			}
			annotations[operatorv1.AnnotationHeldByRestore] = nil
			body.Object["metadata"] = map[string]any{"annotations": annotations}
			return fleet.Explain("changing "+fleet.Describe(u), r.Hub, r.patch(inner, k, u, body.Object))
		})
	})
	if waited := group.Wait(); err == nil {
		err = waited
	}
	return n, err
}

// settling is how long clusters must have been back before placements are evaluated: the hub
// learns of clusters and of placements in any order.
const settling = 3 * time.Second

// isBack reports whether placements can select a cluster again.
func isBack(u *unstructured.Unstructured) bool {
	taints, _, _ := unstructured.NestedSlice(u.Object, "spec", "taints")
	return fleet.ConditionTrue(u, clusterv1.ConditionAvailable) && !slices.ContainsFunc(taints, func(item any) bool {
		taint, _ := item.(map[string]any)
		return taint["key"] == clusterv1.TaintUnreachable || taint["key"] == clusterv1.TaintUnavailable
	})
}

// awaitClusters waits until the clusters have returned that were available.
func (r *restorer) awaitClusters(ctx context.Context) error {
	if !r.Wait || r.Release {
		return nil
	}
	away := maps.Clone(r.file.available)
	r.run.Step("clusters")
	err := await.Objects(ctx, await.Query{Client: r.Hub.Client, Resource: fleet.ManagedClusters, Clock: r.run.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			away = maps.Clone(r.file.available)
			for _, u := range items {
				if isBack(u) {
					delete(away, u.GetName())
				}
			}
			r.run.Detail(fmt.Sprintf("%d of %d are back", len(r.file.available)-len(away), len(r.file.available)))
			return len(away) == 0, nil
		})
	r.result.Away = slices.Sorted(maps.Keys(away))
	if err == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.run.Given.Clock.After(settling):
		}
		r.run.Done(fmt.Sprintf("%d of %d are back", len(r.file.available), len(r.file.available)))
		return nil
	}
	const named = 5
	cause := strings.Join(r.result.Away[:min(named, len(away))], ", ")
	if more := len(away) - named; more > 0 {
		cause += fmt.Sprintf(" and %d more", more)
	}
	first := ""
	if len(away) > 0 && r.result.Moved() {
		first = r.result.Away[0]
	}
	return r.run.Expired(err, "clusters that were available", cause+" have not returned; placements are not evaluated until they do",
		JoinOrRelease.On(r.Hub, "cluster", first))
}

// release has placements evaluated again, unless clusters are still to be waited for.
func (r *restorer) release(ctx context.Context) error {
	placements := order[slices.IndexFunc(order, func(k kind) bool { return k.name == kindPlacement })]
	if !r.Wait && !r.Release {
		err := r.held(ctx, placements, func(*unstructured.Unstructured) { r.result.Held++ })
		if err != nil || r.result.Held > 0 {
			return err
		}
		return r.record(ctx, stateDone)
	}
	r.run.Step("placements")
	n, err := r.letGo(ctx, kindPlacement, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		clusterv1beta1.AnnotationSchedulingDisable: nil,
	}}})
	if err != nil {
		return err
	}
	r.run.Done(fmt.Sprintf("%s evaluated again", fleet.AreMany(n, "placement")))
	return r.record(ctx, stateDone)
}
