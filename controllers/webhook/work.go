// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/identity"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// maxManifests is how many bytes the manifests of one work may have together
// (work.md 11).
const maxManifests = 500 << 10

// maxWorkName is how long the name of a work may be: its AppliedManifestWork is
// named by 64 characters, "-" and the name (work.md 3).
const maxWorkName = 253 - 65

// nilExecutor is the account that works without an executor are applied by.
const nilExecutor = "klusterlet-work-sa"

// validateWork refuses works that no agent could apply, and executors that the
// requester may not use (work.md 11).
func (s *Server) validateWork(ctx context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	work, old, err := objects[workv1.ManifestWork](r)
	if err != nil {
		return nil, err
	}
	if clusters, agent := identity.Clusters(r.UserInfo.Groups); agent && (len(clusters) != 1 || clusters[0] != r.Namespace) {
		return nil, apierrors.NewForbidden(schema.GroupResource{Group: workv1.GroupName, Resource: "manifestworks"}, work.Name,
			fmt.Errorf("agent %q cannot change works of another cluster", r.UserInfo.Username))
	}
	if work.DeletionTimestamp != nil {
		// Nothing may keep the finalizers of a work from being taken off.
		return nil, nil
	}
	if old == nil && len(work.Name) > maxWorkName {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name: has %d characters, more than the %d that an agent can handle", len(work.Name), maxWorkName))
	}
	if old == nil || !reflect.DeepEqual(work.Spec.Workload, old.Spec.Workload) {
		if err := CheckManifests(work.Spec.Workload.Manifests); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if old != nil && reflect.DeepEqual(work.Spec.Executor, old.Spec.Executor) {
		return nil, nil
	}
	return nil, s.checkExecutor(ctx, work, r.Namespace, r.UserInfo)
}

// CheckManifests tells why the manifests of a work are refused, or nil
// (work.md 11). It is pure; a dry run without a hub uses it too.
func CheckManifests(manifests []workv1.Manifest) error {
	if len(manifests) == 0 {
		return fmt.Errorf("manifests should not be empty")
	}
	size := 0
	for i := range manifests {
		size += len(manifests[i].Raw)
	}
	if size > maxManifests {
		return fmt.Errorf("the size of manifests is %d bytes which exceeds the %d limit", size, maxManifests)
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

// checkExecutor wants the right to act as the executor in the work's namespace.
func (s *Server) checkExecutor(ctx context.Context, work *workv1.ManifestWork, namespace string, user authenticationv1.UserInfo) error {
	account := workv1.ManifestWorkSubjectServiceAccount{Name: nilExecutor}
	switch {
	case work.Spec.Executor == nil && !s.o.Features().NilExecutorValidating:
		return nil
	case work.Spec.Executor == nil:
	case work.Spec.Executor.Subject.ServiceAccount == nil:
		return apierrors.NewBadRequest("executor service account can not be nil")
	default:
		account = *work.Spec.Executor.Subject.ServiceAccount
	}
	may, err := s.o.Hub.Allowed(ctx, user, authorizationv1.ResourceAttributes{
		Group: workv1.GroupName, Resource: "manifestworks", Verb: "execute-as", Namespace: namespace,
		Name: fmt.Sprintf("system:serviceaccount:%s:%s", account.Namespace, account.Name),
	})
	if err != nil || may {
		return err
	}
	return apierrors.NewBadRequest(fmt.Sprintf("user %s cannot manipulate the Manifestwork with executor %s/%s in namespace %s",
		user.Username, account.Namespace, account.Name, namespace))
}
