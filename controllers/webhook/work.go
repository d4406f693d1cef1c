// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

// MaxManifests is the default of Options.ManifestLimit in bytes, and LimitOfManifests its
// maximum: a work and its status are one object, and etcd accepts 1.5 MiB.
const (
	MaxManifests     = 500 << 10
	LimitOfManifests = 1 << 20
)

// maxWorkName is the longest name of a work: its AppliedManifestWork is named with 64
// characters, "-" and that name.
const maxWorkName = 253 - 65

// nilExecutor is the ServiceAccount that applies works without an executor.
const nilExecutor = "klusterlet-work-sa"

// garbageCollector removes and unblocks ownerReferences.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// validateWork refuses works that no agent could apply, and executors that the
// requester may not use.
func (s *Server) validateWork(ctx context.Context, c workChange) error {
	if err := checkWorkAgent(c); err != nil {
		return err
	}
	before := &c.old.Spec
	if c.creates {
		before = nil
	}
	if err := s.checkExecutors(ctx, &c.now.Spec, before, c.AdmissionRequest); err != nil {
		return err
	}
	if c.now.DeletionTimestamp != nil {
		// Nothing may prevent the removal of a work's finalizers.
		return nil
	}
	if !c.creates && fateChanges(c.now, c.old) && c.UserInfo.Username != garbageCollector {
		if err := s.checkStored(ctx, before, c.AdmissionRequest); err != nil {
			return err
		}
	}
	if err := s.checkDenied(ctx, c); err != nil {
		return err
	}
	if c.creates && len(c.now.Name) > maxWorkName {
		return badRequest("metadata.name: has %d characters, more than the %d that an agent can handle", len(c.now.Name), maxWorkName)
	}
	if !c.creates && reflect.DeepEqual(c.now.Spec.Workload, c.old.Spec.Workload) {
		return nil
	}
	return checkManifests(c.now.Spec.Workload.Manifests, s.o.ManifestLimit)
}

type workChange = change[workv1.ManifestWork]

var workResource = works.GroupResource()

// checkWorkAgent restricts an agent to finalizers and annotations of the works of its own
// cluster. With an owner that does not exist, the work would be garbage-collected
// (CVE-2025-5187); with a label, it would count for another replica set.
func checkWorkAgent(c workChange) error {
	clusters, agent := identity.Clusters(c.UserInfo.Groups)
	if !agent {
		return nil
	}
	work, old := c.now, c.old
	what := ""
	switch {
	case len(clusters) != 1 || clusters[0] != c.Namespace:
		what = "works of another cluster"
	case c.creates:
		what = "which works there are"
	case !reflect.DeepEqual(work.Spec, old.Spec):
		what = "the spec of a work"
	case !reflect.DeepEqual(work.OwnerReferences, old.OwnerReferences):
		what = "ownerReferences of a work"
	case !maps.Equal(work.Labels, old.Labels):
		what = "labels of a work"
	case work.Annotations[addonv1alpha1.AnnotationConfigSpecHash] != old.Annotations[addonv1alpha1.AnnotationConfigSpecHash]:
		what = "annotation " + addonv1alpha1.AnnotationConfigSpecHash + " of a work"
	default:
		return nil
	}
	return forbidden(workResource, work.Name, "agent %q cannot change %s", c.UserInfo.Username, what)
}

// checkDenied refuses new content for a denied cluster, whoever writes it. Its agent keeps
// the right to read works until its existing works are gone, because it must clean them up,
// and must not read content written after the denial. Content may be removed, and the
// deletion options of a work may be changed.
func (s *Server) checkDenied(ctx context.Context, c workChange) error {
	before := c.old.Spec.Workload.Manifests
	if !c.creates && !slices.ContainsFunc(c.now.Spec.Workload.Manifests, func(m workv1.Manifest) bool {
		return !slices.ContainsFunc(before, func(o workv1.Manifest) bool { return bytes.Equal(o.Raw, m.Raw) })
	}) {
		return nil
	}
	cluster := c.now.Namespace
	denied, err := s.o.Hub.Denied(ctx, cluster)
	if err != nil || !denied {
		return err
	}
	return forbidden(workResource, c.now.Name,
		"cluster %s is denied, and its agent may still read works: it gets nothing new until it is accepted again: kubectl ocm accept %s", cluster, cluster)
}

// checkManifests refuses manifests that no agent can handle; limit is the allowed total size
// in bytes. It is a pure function.
func checkManifests(manifests []workv1.Manifest, limit int) error {
	if len(manifests) == 0 {
		return badRequest("manifests should not be empty")
	}
	size := 0
	for i := range manifests {
		size += len(manifests[i].Raw)
	}
	if size > limit {
		return badRequest("the size of manifests is %d bytes which exceeds the %d limit", size, limit)
	}
	type key struct{ apiVersion, kind, namespace, name string }
	seen := map[key]bool{}
	for i := range manifests {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(manifests[i].Raw); err != nil {
			return badRequest("spec.workload.manifests[%d]: %s", i, err)
		}
		switch {
		case u.GetGenerateName() != "":
			return badRequest("generateName must not be set in manifest")
		case u.GetName() == "":
			return badRequest("name must be set in manifest")
		}
		k := key{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}
		if seen[k] {
			return badRequest("duplicate manifest for resource %s/%s with resource type %s.%s", k.namespace, k.name, k.apiVersion, k.kind)
		}
		seen[k] = true
	}
	return nil
}

// checkExecutors requires the right to act as the executor for changes of what the executor
// does: the manifests, how they are applied, their deletion, and the executor itself.
// Changing the executor requires the right for both, since what the old one applied changes
// hands. The hub itself only creates works of replica sets, which are subject to the same
// rule.
func (s *Server) checkExecutors(ctx context.Context, spec, old *workv1.ManifestWorkSpec, r *admissionv1.AdmissionRequest) error {
	if s.isHub(r.UserInfo) || (old != nil && reflect.DeepEqual(spec, old)) {
		return nil
	}
	if err := s.checkExecutor(ctx, spec.Executor, r); err != nil || old == nil || reflect.DeepEqual(spec.Executor, old.Executor) {
		return err
	}
	return s.checkStored(ctx, old, r)
}

// checkStored requires the right to act as the executor of a stored spec for changes that
// hand over, redirect or remove what it applied. The hub itself needs no right.
func (s *Server) checkStored(ctx context.Context, old *workv1.ManifestWorkSpec, r *admissionv1.AdmissionRequest) error {
	if s.isHub(r.UserInfo) || (old.Executor != nil && old.Executor.Subject.ServiceAccount == nil) {
		// No user can act as an executor without an account, and it must be possible to
		// correct it.
		return nil
	}
	return s.checkExecutor(ctx, old.Executor, r)
}

// fateChanges reports whether another actor may write or remove the object from now on: the
// replica set that its label names, or the garbage collector, which deletes objects whose
// owner does not exist. Removing an owner reference frees the object.
func fateChanges(now, old metav1.Object) bool {
	if now.GetLabels()[workv1alpha1.LabelManifestWorkReplicaSet] != old.GetLabels()[workv1alpha1.LabelManifestWorkReplicaSet] {
		return true
	}
	before := old.GetOwnerReferences()
	return slices.ContainsFunc(now.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return !slices.ContainsFunc(before, func(b metav1.OwnerReference) bool { return reflect.DeepEqual(o, b) })
	})
}

// checkExecutor requires the right to act as the executor in the namespace of the request.
func (s *Server) checkExecutor(ctx context.Context, executor *workv1.ManifestWorkExecutor, r *admissionv1.AdmissionRequest) error {
	account := workv1.ManifestWorkSubjectServiceAccount{Name: nilExecutor}
	switch {
	case executor == nil && !s.o.Features().NilExecutorValidating:
		return nil
	case executor == nil:
	case executor.Subject.ServiceAccount == nil:
		return badRequest("executor service account can not be nil")
	default:
		account = *executor.Subject.ServiceAccount
	}
	may, err := s.o.Hub.Allowed(ctx, r.UserInfo, authorizationv1.ResourceAttributes{
		Group: workv1.GroupName, Resource: "manifestworks", Verb: "execute-as", Namespace: r.Namespace,
		Name: fmt.Sprintf("system:serviceaccount:%s:%s", account.Namespace, account.Name),
	})
	if err != nil || may {
		return err
	}
	return badRequest("user %s cannot manipulate the Manifestwork with executor %s/%s in namespace %s",
		r.UserInfo.Username, account.Namespace, account.Name, r.Namespace)
}
