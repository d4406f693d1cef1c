// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// provisioned is as much of Cluster API as the hub reads: its kind, and a cluster.
const provisioned = `
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: clusters.cluster.x-k8s.io,
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/cluster-api"}},
  spec: {group: cluster.x-k8s.io, scope: Namespaced, names: {kind: Cluster, listKind: ClusterList, plural: clusters, singular: cluster},
    versions: [{name: v1beta1, served: true, storage: true,
      schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {phase: {type: string}}}}}}}]}}
---
{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: one, namespace: default}, status: {phase: Provisioned}}
---
{apiVersion: v1, kind: Secret, metadata: {name: one-kubeconfig, namespace: default}, stringData: {value: "{}"}}
---
{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: imported, annotations: {cluster.x-k8s.io/cluster: default/one}}}
`

// imports switches the gate ClusterImporter as the plugin does. That the loop reads the Secret
// shows its rights; the import itself is the same code as in the compact layout.
func (s *splitHub) imports(t *testing.T) {
	ctx := t.Context()
	var made []*unstructured.Unstructured
	for _, document := range strings.Split(provisioned, "---\n") {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &u.Object))
		until(t, func() error {
			_, err := s.hub.Dynamic(t).Resource(fleet.ResourceOf(u)).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{})
			return err // the kind is served after a moment
		})
		made = append(made, u)
	}
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--feature-gates", "ClusterImporter=true", "--timeout", "5m").code)
	list, err := s.kube.AppsV1().Deployments(operatorv1.NamespaceHub).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		d := &list.Items[i]
		require.Equal(t, strings.HasPrefix(d.Name, "cluster-manager-registration-"), // the webhook gets the same gates
			slices.Contains(d.Spec.Template.Spec.Containers[0].Args, "--feature-gates=ClusterImporter=true"), d.Name)
	}
	until(t, func() error {
		mc, err := typed.Get[clusterv1.ManagedCluster](ctx, s.hub.Dynamic(t), clusters, "", "imported")
		if err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionImportSucceeded)
		if c == nil || c.Reason != clusterv1.ReasonKubeConfigGetFailed || strings.Contains(c.Message, "forbidden") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--feature-gates", "ClusterImporter=false", "--timeout", "5m").code)
	binding, err := s.kube.RbacV1().ClusterRoleBindings().Get(ctx, "cluster-manager-importer", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, binding.Subjects)
	for _, u := range slices.Backward(made) {
		api := s.hub.Dynamic(t).Resource(fleet.ResourceOf(u)).Namespace(u.GetNamespace())
		require.NoError(t, api.Delete(ctx, u.GetName(), metav1.DeleteOptions{}))
		until(t, func() error {
			_, err := api.Get(ctx, u.GetName(), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%s is still there: %w", u.GetName(), err)
		})
	}
}

// limits changes the ConfigMap that limits connections.
func (s *splitHub) limits(t *testing.T) {
	ctx := t.Context()
	args := func(want ...string) {
		t.Helper()
		last := ""
		require.True(t, harness.Until(patience, func() bool {
			list, err := s.kube.AppsV1().Deployments(operatorv1.NamespaceHub).List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			for i := range list.Items {
				var have []string
				for _, arg := range list.Items[i].Spec.Template.Spec.Containers[0].Args {
					if strings.HasPrefix(arg, "--tls-") {
						have = append(have, arg)
					}
				}
				if last = fmt.Sprint(list.Items[i].Name, have); !slices.Equal(have, want) {
					return false
				}
			}
			return len(list.Items) == 7
		}), "%v", &last)
	}
	applied := func(status metav1.ConditionStatus, message string) {
		t.Helper()
		last := &metav1.Condition{}
		require.True(t, harness.Until(patience, func() bool {
			last = apimeta.FindStatusCondition(s.status(t).Conditions, operatorv1.ConditionApplied)
			return last.Status == status && strings.Contains(last.Message, message)
		}), "%+v", &last)
	}
	maps := s.kube.CoreV1().ConfigMaps(operatorv1.NamespaceOperator)
	args("--tls-min-version=VersionTLS12")
	profile, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ocm-tls-profile"}, Data: map[string]string{
		"minTLSVersion": "TLSv1.3", "cipherSuites": "TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384",
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	strict := []string{"--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384"}
	args(strict...)
	profile.Data["minTLSVersion"] = "1.4"
	_, err = maps.Update(ctx, profile, metav1.UpdateOptions{})
	require.NoError(t, err)
	applied(metav1.ConditionFalse, `TLS version "1.4"`)
	// Not even a new operator changes what runs.
	require.NoError(t, s.kube.CoreV1().Pods(operatorv1.NamespaceOperator).DeleteCollection(
		ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=cluster-manager"},
	))
	s.manager(t, `{"metadata":{"annotations":{"seen":"by the new one"}},"spec":{"registrationConfiguration":{"autoApproveUsers":["nobody"]}}}`)
	args(strict...)
	applied(metav1.ConditionFalse, `TLS version "1.4"`)
	require.NoError(t, maps.Delete(ctx, profile.Name, metav1.DeleteOptions{}))
	args("--tls-min-version=VersionTLS12")
	applied(metav1.ConditionTrue, "")
}
