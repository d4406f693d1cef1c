// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/test/install"
)

// lifecycleManager installs both sides as the Operator Lifecycle Manager does, joins them, and
// removes them: the custom resources first, then what the manager created.
func (g *installGuide) lifecycleManager(t *testing.T) {
	t.Helper()
	var created []func()
	bundle := func(name, at, namespace string) {
		objects, err := install.Bundle(filepath.Join(g.folder, "config", "olm", name), namespace)
		require.NoError(t, err)
		// The manager creates the Deployments when everything else is there.
		sorted(objects, []string{"CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service"})
		client := g.clusters[at].Dynamic(t)
		for _, o := range objects {
			require.NoError(t, apply(t, client, o), o.GetName())
			created = append(created, func() {
				err := client.Resource(reconcile.ResourceOf(o.GroupVersionKind())).Namespace(o.GetNamespace()).
					Delete(t.Context(), o.GetName(), metav1.DeleteOptions{})
				require.NoError(t, reconcile.IgnoreNotFound(err))
			})
		}
		definition := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" })
		established(t, client, objects[definition].GetName())
	}
	g.run(t, `kubectl create namespace open-cluster-management --context hub
kubectl create namespace open-cluster-management-agent --context cluster1
kubectl create namespace open-cluster-management-agent-addon --context cluster1
`)
	bundle("cluster-manager", "hub", "open-cluster-management")
	g.run(t, `kubectl apply --server-side -f config/hub/manifests/clustermanager.yaml --context hub
kubectl wait --for=condition=Progressing=false clustermanager/cluster-manager --timeout=180s --context hub
umask 077
kubectl ocm hub token --cluster cluster1 --print kubeconfig --context hub > bootstrap.kubeconfig
kubectl create secret generic bootstrap-hub-kubeconfig --from-file=kubeconfig=bootstrap.kubeconfig -n open-cluster-management-agent --context cluster1
`)
	bundle("klusterlet", "cluster1", "open-cluster-management-agent")
	g.run(t, `kubectl apply --server-side -f config/agent/manifests/klusterlet.yaml --context cluster1
kubectl wait --for=create csr -l open-cluster-management.io/cluster-name=cluster1 --timeout=180s --context hub
kubectl ocm accept cluster1 --wait --context hub
kubectl delete klusterlet klusterlet --context cluster1
kubectl ocm cluster remove cluster1 --force --context hub --yes
kubectl delete clustermanager cluster-manager --context hub
`)
	for _, remove := range created {
		remove()
	}
	g.run(t, `kubectl delete namespace open-cluster-management open-cluster-management-hub --ignore-not-found --context hub
kubectl delete namespace open-cluster-management-agent open-cluster-management-agent-addon --ignore-not-found --context cluster1
`)
}
