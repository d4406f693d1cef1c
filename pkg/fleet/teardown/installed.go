// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// hubInventory is what an installer applies, in the order of its removal: the process first,
// its rights last.
var hubInventory = []struct {
	resource   schema.GroupVersionResource
	namespaces []string
}{
	{deployments, []string{operatorv1.NamespaceOperator}},
	{hubServices, []string{operatorv1.NamespaceOperator}},
	{hubSecrets, []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub}},
	{hubConfigMaps, []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub, metav1.NamespacePublic}},
	{hubRoleBindings, []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub, metav1.NamespacePublic}},
	{hubRoles, []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub, metav1.NamespacePublic}},
	{hubAccounts, []string{operatorv1.NamespaceOperator}},
	{hubClusterBindings, []string{""}},
	{hubClusterRoles, []string{""}},
	{hubDefinitions, []string{""}},
}

// hubInstalled removes what the installer applied, found by its label, and then the
// namespaces; it returns what it waits for.
func hubInstalled(ctx context.Context, client dynamic.Interface, owner string) (string, error) {
	selector := operatorv1.LabelCreatedByClusterManager + "=" + owner
	var errs []error
	for _, kind := range hubInventory {
		for _, namespace := range kind.namespaces {
			list, err := client.Resource(kind.resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil {
				errs = append(errs, fmt.Errorf("listing %s: %w", kind.resource.Resource, err))
				continue
			}
			for i := range list.Items {
				o := &list.Items[i]
				errs = append(errs, reconcile.Delete(ctx, client, reconcile.Target{
					Resource: kind.resource, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
				}))
			}
		}
	}
	errs = append(errs, deleteLock(ctx, client))
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	return hubNamespacesGone(ctx, client, owner)
}

// hubLock is the lease for leader election of hub processes.
const hubLock = "clustermanager-lock"

func deleteLock(ctx context.Context, client dynamic.Interface) error {
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	return reconcile.Delete(ctx, client, reconcile.Target{Resource: leases, Namespace: operatorv1.NamespaceOperator, Name: hubLock})
}

// hubNamespacesGone removes the two namespaces, unless one has another owner: a hub that
// manages itself shares one with its agent. It returns what it waits for, including
// definitions that are still being deleted.
func hubNamespacesGone(ctx context.Context, client dynamic.Interface, owner string) (string, error) {
	for _, name := range []string{operatorv1.NamespaceHub, operatorv1.NamespaceOperator} {
		if waiting, err := hubNamespaceGone(ctx, client, name, owner); waiting != "" || err != nil {
			return waiting, err
		}
	}
	_, err := client.Resource(hubDefinitions).Get(ctx, "clustermanagers."+operatorv1.GroupName, metav1.GetOptions{})
	if err == nil {
		return "API clustermanagers." + operatorv1.GroupName + " to go", nil
	}
	if !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading definition clustermanagers: %w", err)
	}
	return "", nil
}

// hubNamespaceGone removes one namespace of the owner, or disowns it when it has another owner
// too; it returns what it waits for.
func hubNamespaceGone(ctx context.Context, client dynamic.Interface, name, owner string) (string, error) {
	live, err := client.Resource(hubNamespaces).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if live.GetLabels()[operatorv1.LabelCreatedByClusterManager] != owner {
		return "", nil
	}
	if isShared(live) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, operatorv1.LabelCreatedByClusterManager)
		if _, err := client.Resource(hubNamespaces).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return "", fmt.Errorf("giving up namespace %s: %w", name, err)
		}
		return "", nil
	}
	if err := reconcile.Delete(ctx, client, reconcile.Target{Resource: hubNamespaces, Name: name, UID: live.GetUID()}); err != nil {
		return "", err
	}
	return "namespace " + name + " to go", nil
}

// isShared reports whether a namespace belongs to an agent too.
func isShared(o *unstructured.Unstructured) bool {
	for key := range o.GetLabels() {
		if strings.HasPrefix(key, operatorv1.LabelCreatedByKlusterlet) {
			return true
		}
	}
	return false
}
