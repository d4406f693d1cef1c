// SPDX-License-Identifier: Apache-2.0

package fakefleet

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// watchWorks watches the works of the cluster until ctx ends, and does with each what the agent
// does on the hub.
func (a *agent) watchWorks(ctx context.Context) {
	c, known := call{resource: workv1.ResourceManifestWorks, path: a.worksPath()}, versions{}
	a.stream(ctx, c, "0", func(kind string, raw json.RawMessage) (string, error) {
		work := &workv1.ManifestWork{}
		if err := json.Unmarshal(raw, work); err != nil {
			return "", err
		}
		version := work.ResourceVersion
		if kind == eventBookmark || known.isOld(kind, work) {
			return version, nil
		}
		// After a conflict or a deletion, another event follows.
		if err := a.carryOut(ctx, work); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return "", err
		}
		known.note(version, work)
		return version, nil
	})
}

// versions holds the resourceVersions that the agent has written objects at and whose events are
// still to come, by UID. Acting on an event from before would only be refused.
type versions map[types.UID]uint64

// note records an object that an event brought at a version, as it is after the agent has acted.
func (v versions) note(version string, o metav1.Object) {
	if written := o.GetResourceVersion(); written != version {
		v[o.GetUID()] = number(written)
	}
}

// isOld reports whether there is nothing to do about an event.
func (v versions) isOld(kind string, o metav1.Object) bool {
	if kind != eventDeleted && number(o.GetResourceVersion()) < v[o.GetUID()] {
		return true
	}
	delete(v, o.GetUID())
	return kind == eventDeleted
}

// number returns a resourceVersion of kube-apiserver as what it is, and 0 for others.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (a *agent) worksPath() string {
	return "/apis/" + workv1.GroupVersion.String() + "/namespaces/" + a.cluster + "/" + workv1.ResourceManifestWorks
}

// carryOut takes the steps that a work needs: the finalizer, one status for each generation,
// and at the end the removal of the finalizer.
func (a *agent) carryOut(ctx context.Context, work *workv1.ManifestWork) error {
	kept := slices.Contains(work.Finalizers, workv1.FinalizerManifestWork)
	switch {
	case work.DeletionTimestamp != nil && kept:
		rest := slices.DeleteFunc(slices.Clone(work.Finalizers), func(f string) bool { return f == workv1.FinalizerManifestWork })
		return a.patchWork(ctx, work, "", map[string]any{"metadata": finalizers(work, rest)})
	case work.DeletionTimestamp != nil || isReported(work):
		return nil
	case !kept:
		all := append(slices.Clone(work.Finalizers), workv1.FinalizerManifestWork)
		if err := a.patchWork(ctx, work, "", map[string]any{"metadata": finalizers(work, all)}); err != nil {
			return err
		}
	}
	after := status.Build(work.Status, work.Generation, outcomes(work), a.fleet.o.Clock.Now())
	return a.patchWork(ctx, work, "/status", map[string]any{"metadata": basis(work), "status": after})
}

// patchWork patches a work and reads it back.
func (a *agent) patchWork(ctx context.Context, work *workv1.ManifestWork, subresource string, patch map[string]any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	now := &workv1.ManifestWork{}
	if err := a.do(ctx, call{
		method: http.MethodPatch, resource: workv1.ResourceManifestWorks + subresource,
		path: a.worksPath() + "/" + work.Name + subresource, contentType: mergePatch, body: body,
	}, now); err != nil {
		return err
	}
	*work = *now
	return nil
}

// basis is the part of a patch that makes it fail if the object is no longer as it was read.
func basis(o metav1.Object) map[string]any {
	return map[string]any{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()}
}

func finalizers(o metav1.Object, all []string) map[string]any {
	out := basis(o)
	out["finalizers"] = all
	return out
}

// isReported reports whether the status is that of the current generation.
func isReported(work *workv1.ManifestWork) bool {
	for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
		c := apimeta.FindStatusCondition(work.Status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != work.Generation {
			return false
		}
	}
	return true
}

// outcomes are those of manifests that were all applied.
func outcomes(work *workv1.ManifestWork) []status.Outcome {
	var out []status.Outcome
	for i, m := range work.Spec.Workload.Manifests {
		o := metav1.PartialObjectMetadata{}
		// Admission has refused what cannot be read.
		_ = json.Unmarshal(m.Raw, &o)
		gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
		plural, _ := apimeta.UnsafeGuessKindToResource(gvk)
		out = append(out, status.Outcome{
			Meta: workv1.ManifestResourceMeta{
				Ordinal: int32(i), Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Resource: plural.Resource, //nolint:gosec // a work has few manifests
				Namespace: o.Namespace, Name: o.Name,
			},
			Applied: status.Applied(""), Available: status.Exists(true), Feedback: status.NoFeedback(),
		})
	}
	return out
}
