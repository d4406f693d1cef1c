// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// cleanUp removes all copies. An error makes Kubernetes run it again.
func cleanUp(ctx context.Context, o options) error {
	if err := required("addon-namespace", o.namespace); err != nil {
		return err
	}
	managed, err := connect(o.managedKubeconfig)
	if err != nil {
		return err
	}
	return removeCopies(ctx, o, managed)
}

// removeCopies removes what bears the label of the add-on, each though another fails.
func removeCopies(ctx context.Context, o options, managed dynamic.Interface) error {
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
	logr.FromContextOrDiscard(ctx).Info("Copies are removed", "removed", len(copies)-len(failed), "left", len(failed))
	return errors.Join(failed...)
}
