// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

// MaxManifests is how many bytes the manifests of one work may have together unless
// Options say otherwise, LimitOfManifests how many they may be told to have: a work
// with its status is one object, of which etcd takes 1.5 MiB.
const (
	MaxManifests     = 500 << 10
	LimitOfManifests = 1 << 20
)

// maxWorkName is how long the name of a work may be: its AppliedManifestWork is
// named by 64 characters, "-" and the name.
const maxWorkName = 253 - 65

// nilExecutor is the account that works without an executor are applied by.
const nilExecutor = "klusterlet-work-sa"

// garbageCollector takes off and unblocks ownerReferences.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// validateWork refuses works that no agent could apply, and executors that the
// requester may not use.
func (s *Server) validateWork(ctx context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	work, old, err := objects[workv1.ManifestWork](r)
	if err != nil {
		return nil, err
	}
	if err := checkWorkAgent(work, old, r); err != nil {
		return nil, err
	}
	var before *workv1.ManifestWorkSpec
	if old != nil {
		before = &old.Spec
	}
	if err := s.checkExecutors(ctx, &work.Spec, before, r); err != nil {
		return nil, err
	}
	if work.DeletionTimestamp != nil {
		// Nothing may keep the finalizers of a work from being taken off.
		return nil, nil
	}
	if old != nil && fateChanges(work, old) && r.UserInfo.Username != garbageCollector {
		if err := s.checkStored(ctx, before, r); err != nil {
			return nil, err
		}
	}
	if err := s.checkDenied(ctx, work, old); err != nil {
		return nil, err
	}
	return nil, checkWork(work, old, s.o.ManifestLimit)
}

// checkWork refuses a name that is new, or manifests that are, which no agent can handle.
func checkWork(work, old *workv1.ManifestWork, limit int) error {
	if old == nil && len(work.Name) > maxWorkName {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.name: has %d characters, more than the %d that an agent can handle", len(work.Name), maxWorkName))
	}
	if old != nil && reflect.DeepEqual(work.Spec.Workload, old.Spec.Workload) {
		return nil
	}
	if err := checkManifests(work.Spec.Workload.Manifests, limit); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// checkWorkAgent holds an agent to the works of its own cluster, and of those to
// finalizers and annotations. An owner that is not there would have the work
// collected (CVE-2025-5187), a label would count it for another set of works.
func checkWorkAgent(work, old *workv1.ManifestWork, r *admissionv1.AdmissionRequest) error {
	clusters, agent := identity.Clusters(r.UserInfo.Groups)
	if !agent {
		return nil
	}
	what := ""
	switch {
	case len(clusters) != 1 || clusters[0] != r.Namespace:
		what = "works of another cluster"
	case old == nil:
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
	return apierrors.NewForbidden(schema.GroupResource{Group: workv1.GroupName, Resource: "manifestworks"}, work.Name,
		fmt.Errorf("agent %q cannot change %s", r.UserInfo.Username, what))
}

// checkManifests tells why the manifests of a work are refused, of which limit
// bytes are allowed, or nil. It is pure.
func checkManifests(manifests []workv1.Manifest, limit int) error {
	if len(manifests) == 0 {
		return fmt.Errorf("manifests should not be empty")
	}
	size := 0
	for i := range manifests {
		size += len(manifests[i].Raw)
	}
	if size > limit {
		return fmt.Errorf("the size of manifests is %d bytes which exceeds the %d limit", size, limit)
	}
	type key struct{ apiVersion, kind, namespace, name string }
	seen := map[key]bool{}
	for i := range manifests {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(manifests[i].Raw); err != nil {
			return fmt.Errorf("spec.workload.manifests[%d]: %w", i, err)
		}
		switch {
		case u.GetGenerateName() != "":
			return fmt.Errorf("generateName must not be set in manifest")
		case u.GetName() == "":
			return fmt.Errorf("name must be set in manifest")
		}
		k := key{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}
		if seen[k] {
			return fmt.Errorf("duplicate manifest for resource %s/%s with resource type %s.%s", k.namespace, k.name, k.apiVersion, k.kind)
		}
		seen[k] = true
	}
	return nil
}

// checkExecutors wants the right to act as the executor of whoever changes what
// the executor does: which manifests there are, how they are applied, what
// becomes of them, and who the executor is. In the last case both count, since
// what one applied goes with the change. The hub itself only makes works of sets,
// which are held to the same rule.
func (s *Server) checkExecutors(ctx context.Context, spec, old *workv1.ManifestWorkSpec, r *admissionv1.AdmissionRequest) error {
	if s.self(r.UserInfo) || (old != nil && reflect.DeepEqual(spec, old)) {
		return nil
	}
	if err := s.checkExecutor(ctx, spec.Executor, r); err != nil || old == nil || reflect.DeepEqual(spec.Executor, old.Executor) {
		return err
	}
	return s.checkStored(ctx, old, r)
}

// checkStored wants the right to act as the executor of a stored spec, of
// whoever has others take over, deliver elsewhere or remove what it applied. The
// hub itself is not asked.
func (s *Server) checkStored(ctx context.Context, old *workv1.ManifestWorkSpec, r *admissionv1.AdmissionRequest) error {
	if s.self(r.UserInfo) || (old.Executor != nil && old.Executor.Subject.ServiceAccount == nil) {
		// Nobody can act as an executor of no account, and it must not be there for ever.
		return nil
	}
	return s.checkExecutor(ctx, old.Executor, r)
}

// fateChanges tells whether something else comes to write or remove the object
// from now on: the set of works that its label names, or the garbage collector,
// which deletes what has an owner that is not there. An owner that is taken off
// frees the object.
func fateChanges(now, old metav1.Object) bool {
	if now.GetLabels()[workv1alpha1.LabelManifestWorkReplicaSet] != old.GetLabels()[workv1alpha1.LabelManifestWorkReplicaSet] {
		return true
	}
	before := old.GetOwnerReferences()
	return slices.ContainsFunc(now.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return !slices.ContainsFunc(before, func(b metav1.OwnerReference) bool { return reflect.DeepEqual(o, b) })
	})
}

// checkExecutor wants the right to act as the executor in the namespace of the
// request.
func (s *Server) checkExecutor(ctx context.Context, executor *workv1.ManifestWorkExecutor, r *admissionv1.AdmissionRequest) error {
	account := workv1.ManifestWorkSubjectServiceAccount{Name: nilExecutor}
	switch {
	case executor == nil && !s.o.Features().NilExecutorValidating:
		return nil
	case executor == nil:
	case executor.Subject.ServiceAccount == nil:
		return apierrors.NewBadRequest("executor service account can not be nil")
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
	return apierrors.NewBadRequest(fmt.Sprintf("user %s cannot manipulate the Manifestwork with executor %s/%s in namespace %s",
		r.UserInfo.Username, account.Namespace, account.Name, r.Namespace))
}
