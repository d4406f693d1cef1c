// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Find reads an object from the caches into o, and returns nil if it does not exist.
func Find[T reconcile.Object](ctx context.Context, r manager.Reader, key reconcile.Key, o T, options ...manager.ReadOption) (found T, err error) {
	switch err = r.Get(ctx, key, o, options...); {
	case err == nil:
		return o, nil
	case apierrors.IsNotFound(err):
		return found, nil
	}
	kind := cmp.Or(o.GetObjectKind().GroupVersionKind().Kind, reflect.TypeOf(o).Elem().Name())
	return found, fmt.Errorf("reading %s %s: %w", strings.ToLower(kind), strings.TrimPrefix(key.String(), "/"), err)
}

// FindCluster reads a ManagedCluster from the cache, and returns nil if it does not exist.
func FindCluster(ctx context.Context, r manager.Reader, name string, options ...manager.ReadOption) (*clusterv1.ManagedCluster, error) {
	return Find(ctx, r, reconcile.Key{Name: name}, &clusterv1.ManagedCluster{}, options...)
}

// Gone stands in for a ManagedCluster that does not exist, in a pass over what it left.
func Gone(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

// SetCondition sets a condition unless it already has that status, reason and message; a new
// generation alone is not worth a write.
func SetCondition(mc *clusterv1.ManagedCluster, now time.Time, c metav1.Condition) {
	have := apimeta.FindStatusCondition(mc.Status.Conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
		return
	}
	c.ObservedGeneration = mc.Generation
	reconcile.SetCondition(&mc.Status.Conditions, c, now)
}

// StatusOf is the status of a condition of a cluster; empty when it has none of the type.
func StatusOf(mc *clusterv1.ManagedCluster, kind string) metav1.ConditionStatus {
	if c := apimeta.FindStatusCondition(mc.Status.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}
