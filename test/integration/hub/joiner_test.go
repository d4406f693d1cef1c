// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// joinerRights lists all that a holder of a join token may do on the hub: ask to join, and see
// which clusters and requests there are.
var joinerRights = append([]string{
	"create certificates.k8s.io/certificatesigningrequests all", "list certificates.k8s.io/certificatesigningrequests all",
	"watch certificates.k8s.io/certificatesigningrequests all",
	"get certificates.k8s.io/certificatesigningrequests own", "get certificates.k8s.io/certificatesigningrequests other",
	"create cluster.open-cluster-management.io/managedclusters all", "list cluster.open-cluster-management.io/managedclusters all",
	"watch cluster.open-cluster-management.io/managedclusters all",
	"get cluster.open-cluster-management.io/managedclusters own", "get cluster.open-cluster-management.io/managedclusters other",
}, anybody...)

func TestAJoinTokenAsksToJoinAndReadsNoConfiguration(t *testing.T) {
	s := sharedHub(t)
	_, kube := s.bootstrap(t)
	requireRights(t, joinerRights, kube, s.attempts(t, "joiner1", "joiner10"))
	for path, may := range map[string]bool{
		"kube-public/configmaps/cluster-info": true, "kube-public/configmaps/kube-root-ca.crt": true,
		"kube-public/configmaps/cluster-info2": false, "kube-system/configmaps/kubeadm-config": false, "kube-public/secrets/cluster-info": false,
	} {
		var code int
		_ = kube.Discovery().RESTClient().Get().AbsPath("/api/v1/namespaces/" + path).Do(context.Background()).StatusCode(&code)
		require.Equal(t, may, code != http.StatusForbidden, "%s: %d", path, code)
	}
}

// The hub copies annotations of a cluster to its add-ons: one of them names the cluster that an
// add-on runs on instead, and one its values.
func TestAClusterThatJoinsDecidesNothingAboutOthers(t *testing.T) {
	s := sharedHub(t)
	dyn, _ := s.bootstrap(t)
	for _, key := range []string{addonv1alpha1.AnnotationHostingClusterName, addonv1alpha1.AnnotationValues, clusterv1.AnnotationCAPICluster} {
		mc := cluster("brings")
		mc.Annotations = map[string]string{key: "prod1/x"}
		err := create(dyn, mc)
		require.True(t, apierrors.IsForbidden(err), "%s: %v", key, err)
		require.ErrorContains(t, err, key)
	}
	mc := cluster("brings")
	mc.Finalizers = []string{"example.com/stay"}
	require.True(t, apierrors.IsForbidden(create(dyn, mc)), "a foreign finalizer")
	mc = cluster("brings")
	mc.Annotations = map[string]string{clusterv1.AnnotationPrefixAgent + "/site": "north"}
	require.NoError(t, create(dyn, mc))

	require.NoError(t, create(s.dyn, func() *clusterv1.ManagedCluster {
		mc := cluster("placed")
		mc.Annotations = map[string]string{addonv1alpha1.AnnotationHostingClusterName: "prod1"}
		return mc
	}()), "an administrator may")
}

// With an import the hub uses a Secret that its author may be unable to read.
func TestAnImportNeedsTheRightToTheKubeconfig(t *testing.T) {
	s := sharedHub(t)
	mc := cluster("imports")
	mc.Annotations = map[string]string{clusterv1.AnnotationCAPICluster: "default/one"}
	author := s.user(t, "import-author", editClusters, joinAny)
	settled(t, func() error { return create(author, cluster("imports-nothing")) })
	err := create(author, mc)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "may not get Secret default/one-kubeconfig")
	err = patch(author, "imports-nothing", `{"metadata":{"annotations":{"`+clusterv1.AnnotationCAPICluster+`":"default/one"}}}`)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	reader := s.user(t, "import-reader", editClusters, joinAny,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"one-kubeconfig"}, Verbs: []string{"get"}})
	settled(t, func() error { return create(reader, mc) })
	require.NoError(t, s.dyn.Resource(clusters).Delete(t.Context(), mc.Name, metav1.DeleteOptions{}))
}

// Whoever may have add-ons run on one cluster cannot have their agents run on another one: the hub
// would send them there with its own rights. In either version, and for what is stored already.
func TestNamingAHostingClusterNeedsTheRightToItsAddOns(t *testing.T) {
	s := sharedHub(t)
	rule := rbacv1.PolicyRule{APIGroups: []string{addonv1alpha1.GroupName}, Resources: []string{"managedclusteraddons"}, Verbs: []string{"*"}}
	tenant := s.user(t, "hosting-tenant")
	for _, namespace := range []string{"hosted", "hosting", "hosting10"} {
		_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		require.NoError(t, err)
		if namespace == "hosting10" {
			continue
		}
		_, err = s.kube.RbacV1().Roles(namespace).Create(t.Context(),
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = s.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "hosting-tenant"}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		kind := schema.GroupVersion{Group: addonv1alpha1.GroupName, Version: version}
		api := tenant.Resource(kind.WithResource("managedclusteraddons")).Namespace("hosted")
		add := func(name, host string) error {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": kind.String(), "kind": "ManagedClusterAddOn", "spec": map[string]any{}}}
			u.SetName(name)
			u.SetAnnotations(map[string]string{addonv1alpha1.AnnotationHostingClusterName: host})
			_, err := api.Create(t.Context(), u, metav1.CreateOptions{})
			return err
		}
		move := func(name, host string) error {
			_, err := api.Patch(t.Context(), name, types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, addonv1alpha1.AnnotationHostingClusterName, host), metav1.PatchOptions{})
			return err
		}
		refused := func(err error) {
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, "cannot create managedclusteraddons in namespace hosting10, so its add-ons cannot run on cluster hosting10")
		}
		settled(t, func() error { return add("own-"+version, "hosting") })
		refused(add("other-"+version, "hosting10"))
		refused(move("own-"+version, "hosting10"))
		require.NoError(t, move("own-"+version, ""))
		require.NoError(t, move("own-"+version, "hosted"))
		stored := s.dyn.Resource(kind.WithResource("managedclusteraddons")).Namespace("hosted")
		_, err := stored.Patch(t.Context(), "own-"+version, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"hosting10"}}}`, addonv1alpha1.AnnotationHostingClusterName), metav1.PatchOptions{})
		require.NoError(t, err, "an administrator may")
		require.NoError(t, move("own-"+version, "hosting10"), "it says so already")
		_, err = api.Patch(t.Context(), "own-"+version, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, api.Delete(t.Context(), "own-"+version, metav1.DeleteOptions{}))
	}
}

// Whoever administers namespaces of the hub, also those of clusters, gets nothing of the fleet by
// the roles that Kubernetes has for that.
func TestAnAdministratorOfANamespaceHasNoRightsOnTheFleet(t *testing.T) {
	s := sharedHub(t)
	s.register(t, "governed", "a")
	for _, role := range []string{"admin", "edit", "view"} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "of-" + role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "governor"}},
		}
		_, err := s.kube.RbacV1().RoleBindings("governed").Create(t.Context(), binding, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	kube := s.as(t, "governor")
	settled(t, func() error {
		_, err := kube.CoreV1().Secrets("governed").List(t.Context(), metav1.ListOptions{})
		return err
	})
	attempts := slices.DeleteFunc(s.attempts(t, "governed", "governed10"), func(a attempt) bool {
		return !strings.Contains(a.what, "open-cluster-management.io/")
	})
	require.NotEmpty(t, attempts)
	requireRights(t, nil, kube, attempts)
}
