// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var leases = coordinationv1.SchemeGroupVersion.WithResource("leases")

// cleanUp removes what the agent has created. After an error Kubernetes runs it again.
func cleanUp(ctx context.Context, o options) error {
	if err := required("addon-namespace", o.namespace); err != nil {
		return err
	}
	managed, err := connect(o.managedKubeconfig)
	if err != nil {
		return err
	}
	return remove(ctx, o, managed)
}

// remove deletes everything with the add-on's label, and the agent's lease. A failure does
// not stop it from trying the rest.
func remove(ctx context.Context, o options, managed dynamic.Interface) error {
	copies, err := typed.List[corev1.ConfigMap](ctx, managed, configMaps, o.namespace, metav1.ListOptions{LabelSelector: labelSynced + "=" + o.addOn})
	if err != nil {
		return err
	}
	var failed []error
	for _, c := range copies {
		err := managed.Resource(configMaps).Namespace(o.namespace).Delete(ctx, c.Name, metav1.DeleteOptions{})
		if ignoreGone(err) != nil {
			failed = append(failed, fmt.Errorf("removing configmap %s/%s: %w", o.namespace, c.Name, err))
		}
	}
	if err := managed.Resource(leases).Namespace(o.namespace).Delete(ctx, o.addOn, metav1.DeleteOptions{}); ignoreGone(err) != nil {
		failed = append(failed, fmt.Errorf("removing lease %s/%s: %w", o.namespace, o.addOn, err))
	}
	logr.FromContextOrDiscard(ctx).Info("Removed what the agent created", "copies", len(copies), "failed", len(failed))
	return errors.Join(failed...)
}
