// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// fieldManager of what a playground writes.
const fieldManager = "playground"

// clusterInfo is the name kubeadm gives to the ConfigMap and its role.
const clusterInfo = "cluster-info"

var (
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	configMaps      = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	roles           = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	roleBindings    = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
)

// publishClusterInfo writes what kubeadm writes: the address and certificate authority of
// the cluster, readable without any rights.
func (c *Cluster) publishClusterInfo(ctx context.Context) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: c.Server, CertificateAuthorityData: c.CA}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding cluster-info: %w", err)
	}
	for _, o := range []struct {
		resource schema.GroupVersionResource
		kind     string
		content  map[string]any
	}{
		{configMaps, "ConfigMap", map[string]any{"data": map[string]any{"kubeconfig": string(kubeconfig)}}},
		{roles, "Role", map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{clusterInfo}, "verbs": []any{"get"},
		}}}},
		{roleBindings, "RoleBinding", map[string]any{
			"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": clusterInfo},
			"subjects": []any{
				map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"},
			},
		}},
	} {
		object := &unstructured.Unstructured{Object: o.content}
		object.SetAPIVersion(o.resource.GroupVersion().String())
		object.SetKind(o.kind)
		object.SetName(clusterInfo)
		_, err := c.client.Resource(o.resource).Namespace(metav1.NamespacePublic).
			Apply(ctx, clusterInfo, object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if err != nil {
			return fmt.Errorf("writing %s cluster-info: %w", o.kind, err)
		}
	}
	return nil
}

// apiserverReady reports whether kube-apiserver is ready and cluster-info exists.
func (c *Cluster) apiserverReady(ctx context.Context) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Server+"/readyz", http.NoBody)
	if err != nil {
		return false, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return false, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return false, err
	}
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("kube-apiserver is not ready: %s", text)
	}
	err = c.publishClusterInfo(ctx)
	return err == nil, err
}

// managerReady reports whether two controllers have done their work: the ServiceAccount
// and the root certificate of namespace default exist.
func (c *Cluster) managerReady(ctx context.Context) (bool, error) {
	inDefault := func(r schema.GroupVersionResource) dynamic.ResourceInterface {
		return c.client.Resource(r).Namespace(metav1.NamespaceDefault)
	}
	if _, err := inDefault(serviceAccounts).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return false, err
	}
	if _, err := inDefault(configMaps).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
		return false, err
	}
	return true, nil
}
