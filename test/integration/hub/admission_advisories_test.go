// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// may reports whether the user of a client has a right.
func may(t testing.TB, kube kubernetes.Interface, right authorizationv1.ResourceAttributes) bool {
	t.Helper()
	review, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(context.Background(),
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return review.Status.Allowed
}

// CVE-2024-9779: a stolen token of an operator must not give access to the cluster by
// pods and secrets.
func TestCVE20249779AccountsOfTheHubHaveNoPodsAndNoForeignSecrets(t *testing.T) {
	s := sharedHub(t)
	for _, account := range []string{hub.Name, hub.BootstrapServiceAccount} {
		_, kube := clients(t, s.As(t, hub.Namespace, account))
		for what, right := range map[string]authorizationv1.ResourceAttributes{
			"make pods":        {Verb: "create", Resource: "pods", Namespace: hub.Namespace},
			"make deployments": {Verb: "create", Group: "apps", Resource: "deployments", Namespace: hub.Namespace},
			"change its deployment": {
				Verb:      "patch",
				Group:     "apps",
				Resource:  "deployments",
				Namespace: hub.Namespace,
				Name:      hub.Name,
			},
			"run in pods":            {Verb: "create", Resource: "pods", Subresource: "exec", Namespace: hub.Namespace},
			"read all secrets":       {Verb: "list", Resource: "secrets"},
			"read secrets of others": {Verb: "get", Resource: "secrets", Namespace: "kube-system", Name: "x"},
			"make tokens": {
				Verb:        "create",
				Resource:    "serviceaccounts",
				Subresource: "token",
				Namespace:   "kube-system",
				Name:        "x",
			},
			"act on nodes": {Verb: "create", Resource: "nodes", Subresource: "proxy", Name: "x"},
			"escalate":     {Verb: "escalate", Group: rbacv1.GroupName, Resource: "clusterroles"},
			"bind":         {Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles", Name: "cluster-admin"},
			"sign for kubelets": {
				Verb:     "approve",
				Group:    "certificates.k8s.io",
				Resource: "signers",
				Name:     "kubernetes.io/kube-apiserver-client-kubelet",
			},
			"everything": {Verb: "*", Group: "*", Resource: "*"},
		} {
			require.False(t, may(t, kube, right), "%s may %s", account, what)
		}
	}
}

// GHSA-c7xh-gjv4-4jgv: impersonation must not give access to a system group.
func TestGHSAc7xhGjv44jgvNobodyOfOursImpersonates(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "actor", "a")
	_, process := clients(t, s.As(t, hub.Namespace, hub.Name))
	_, bootstrap := s.bootstrap(t)
	for who, kube := range map[string]kubernetes.Interface{"agent": a.kube, "hub": process, "bootstrap": bootstrap} {
		for _, resource := range []string{"users", "groups", "serviceaccounts", "uids"} {
			require.False(t, may(t, kube, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: resource}), "%s: %s", who, resource)
		}
		for _, group := range []string{"system:masters", clusterv1.UserPrefix + "other", clusterv1.GroupManagedClusters} {
			var code int
			_ = kube.Discovery().RESTClient().Get().AbsPath("/api/v1/namespaces").
				SetHeader("Impersonate-User", "x").SetHeader("Impersonate-Group", group).Do(t.Context()).StatusCode(&code)
			require.Equal(t, http.StatusForbidden, code, "%s as %s", who, group)
		}
	}
}

// CVE-2025-5187: an object with a missing owner is garbage collected, so that the right
// to write owners is a way to delete.
func TestCVE20255187AnAgentSetsNoOwners(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "owned", "a")
	works := schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "manifestworks"}
	require.NoError(t, raw(s.dyn, works, `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"namespace":"owned","name":"w"},
		"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"}}]}}}`))
	const owner = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"none"}]}}`
	_, err := a.dyn.Resource(works).Namespace("owned").Patch(t.Context(), "w", types.MergePatchType, []byte(owner), metav1.PatchOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = a.dyn.Resource(works).Namespace("owned").Patch(
		t.Context(), "w", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["cluster.open-cluster-management.io/manifest-work-cleanup"]}}`),
		metav1.PatchOptions{},
	)
	require.NoError(t, err, "what an agent has to write")
	// Not through the status either.
	_, err = a.dyn.Resource(works).Namespace("owned").Patch(t.Context(), "w", types.MergePatchType, []byte(owner), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	w, err := s.dyn.Resource(works).Namespace("owned").Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, w.GetOwnerReferences())
	w.SetFinalizers(nil)
	_, err = s.dyn.Resource(works).Namespace("owned").Update(t.Context(), w, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func TestAnAgentChangesNothingButTheStatusByTheStatus(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "substatus", "a")
	before := s.joined(t, a, "substatus")
	const all = `{"metadata":{"labels":{"x":"y","cluster.open-cluster-management.io/clusterset":"other"},
		"annotations":{"x":"y","registration.open-cluster-management.io/creator":"eve"},
		"finalizers":[],"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"none"}]},
		"spec":{"hubAcceptsClient":false,"leaseDurationSeconds":1,"taints":[{"key":"k","effect":"NoSelect"}]},"status":{"version":{"kubernetes":"v1.2.3"}}}`
	require.NoError(t, patch(a.dyn, "substatus", all, "status"))
	after := s.get(t, "substatus")
	require.Equal(t, "v1.2.3", after.Status.Version.Kubernetes)
	require.Equal(t, before.Spec, after.Spec)
	require.Equal(t, before.Labels, after.Labels)
	require.Equal(t, before.Annotations, after.Annotations)
	require.Equal(t, before.Finalizers, after.Finalizers)
	require.Empty(t, after.OwnerReferences)

	// Nor on its own cluster: each annotation of the hub, and the rest of the spec.
	for _, change := range []func(*clusterv1.ManagedCluster){
		func(mc *clusterv1.ManagedCluster) { mc.Annotations[clusterv1.AnnotationCreator] = "eve" },
		func(mc *clusterv1.ManagedCluster) {
			mc.Annotations[clusterv1.AnnotationAutomaticallyAcceptedOn] = "now"
		},
		func(mc *clusterv1.ManagedCluster) { mc.Annotations[clusterv1.AnnotationAdoptedNamespace] = "u" },
		func(mc *clusterv1.ManagedCluster) { mc.Annotations[clusterv1.AnnotationSkipClockSyncCheck] = "true" },
		func(mc *clusterv1.ManagedCluster) { mc.Annotations[clusterv1.AnnotationImageRegistries] = "evil" },
		func(mc *clusterv1.ManagedCluster) { mc.Spec.LeaseDurationSeconds = 1 },
		func(mc *clusterv1.ManagedCluster) { mc.Labels[clusterv1.LabelPrefixFeatureAddOn+"x"] = "available" },
	} {
		var err error
		require.True(t, eventually(func() bool {
			mc := s.get(t, "substatus")
			change(mc)
			u, convert := toUnstructured(mc)
			require.NoError(t, convert)
			_, err = a.dyn.Resource(clusters).Update(t.Context(), u, metav1.UpdateOptions{})
			return !apierrors.IsConflict(err)
		}))
		require.True(t, apierrors.IsForbidden(err) || apierrors.IsBadRequest(err), "%v", err)
	}
}

// While the admission webhooks do not answer, clusters keep reporting and renewing, and
// guarded fields stay as they are.
func TestClustersLiveOnWhileAdmissionIsAway(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "living", "a")
	a.renew(t, "living", 0)
	a.report(t, "living", metav1.ConditionTrue)
	s.scale(t, 0)
	defer func() {
		s.scale(t, 1)
		s.awaitHub(t)
	}()
	refused := func(err error) {
		t.Helper()
		require.ErrorContains(t, err, "failed calling webhook")
	}
	require.True(t, eventually(func() bool { return patch(s.dyn, "living", `{"metadata":{"labels":{"a":"b"}}}`) != nil }))
	refused(patch(s.dyn, "living", `{"spec":{"hubAcceptsClient":false}}`))
	refused(create(s.dyn, cluster("newcomer")))

	// Heartbeats, status, certificates and events do not go through admission.
	a.renew(t, "living", 0)
	a.report(t, "living", metav1.ConditionFalse)
	a.report(t, "living", metav1.ConditionTrue)
	_, _ = agentRequest(t, a.kube, "living", "a")
	// A set protects nothing; its rules apply once admission is back.
	sets := schema.GroupVersionResource{Group: clusterv1.GroupName, Version: "v1beta2", Resource: "managedclustersets"}
	_, err := s.dyn.Resource(sets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1beta2",
		"kind":       "ManagedClusterSet",
		"metadata":   map[string]any{"name": "meanwhile"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}
