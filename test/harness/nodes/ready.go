// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clusterInfo is kubeadm's name for the ConfigMap that publishes a cluster's address and
// certificate authority to clients without any rights.
const clusterInfo = "cluster-info"

var (
	configMaps      = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	nodeResource    = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	roles           = rbacv1.SchemeGroupVersion.WithResource("roles")
	roleBindings    = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

// Dynamic returns a client with the administrator's rights.
func (c *Cluster) Dynamic() dynamic.Interface { return c.client }

// Get reads a path of the API as the administrator: a pod's log, a Service through
// kube-apiserver, a health check. Any status but 200 is an error that holds the answer.
func (c *Cluster) Get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Server+path, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("getting %s of %s: %s: %s", path, c.Name, response.Status, body)
	}
	return string(body), err
}

// publish writes what kubeadm would: the address and certificate authority of the
// cluster, readable without any rights.
func (c *Cluster) publish(ctx context.Context) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: c.Server, CertificateAuthorityData: c.CA}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: clusterInfo, Namespace: metav1.NamespacePublic}
	for _, one := range []struct {
		resource schema.GroupVersionResource
		kind     string
		object   any
	}{
		{
			configMaps,
			"ConfigMap",
			&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"kubeconfig": string(kubeconfig)}},
		},
		{roles, "Role", &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{
				APIGroups:     []string{""},
				Resources:     []string{"configmaps"},
				ResourceNames: []string{clusterInfo},
				Verbs:         []string{"get"},
			},
		}}},
		{roleBindings, "RoleBinding", &rbacv1.RoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: clusterInfo},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:anonymous"}},
		}},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one.object)
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{Object: content}
		object.SetGroupVersionKind(one.resource.GroupVersion().WithKind(one.kind))
		create := func(ctx context.Context) (bool, error) {
			_, err = c.client.Resource(one.resource).Namespace(meta.Namespace).Create(ctx, object, metav1.CreateOptions{})
			return err == nil, nil // the namespace may not exist yet
		}
		if waited := wait.PollUntilContextCancel(ctx, pollEvery, true, create); waited != nil {
			return fmt.Errorf("publishing %s: %w: %w", one.resource.Resource, waited, err)
		}
	}
	return nil
}

// awaitNode waits until pods can run: the node is ready and free of taints, and
// namespace default has its ServiceAccount and root certificate.
func (c *Cluster) awaitNode(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 5*pollEvery, true, func(ctx context.Context) (bool, error) {
		last = errors.Join(c.nodeReady(ctx), c.exists(ctx, serviceAccounts, "default"), c.exists(ctx, configMaps, "kube-root-ca.crt"))
		for _, component := range []Component{ControllerManager, Scheduler, Proxy} {
			last = errors.Join(last, c.Ready(ctx, component))
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the node: %w: %w", err, last)
	}
	return nil
}

func (c *Cluster) exists(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	_, err := c.client.Resource(resource).Namespace(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	return err
}

func (c *Cluster) nodeReady(ctx context.Context) error {
	object, err := c.client.Resource(nodeResource).Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var node corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &node); err != nil {
		return err
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("node has taints: %v", node.Spec.Taints)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			return errors.New(condition.Message)
		}
	}
	return errors.New("node has no condition Ready yet")
}
