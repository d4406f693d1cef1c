// SPDX-License-Identifier: Apache-2.0

package addonhealth

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// view is the part of a cluster that concerns the loops.
type view struct {
	known    bool   // it has been heard from
	away     bool   // it is Unknown
	message  string // why
	features string // its feature labels
}

func viewOf(mc *clusterv1.ManagedCluster) view {
	if mc == nil {
		return view{}
	}
	var v view
	if c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable); c != nil {
		v.known, v.away = true, c.Status == metav1.ConditionUnknown
		if v.away {
			v.message = c.Reason + " " + c.Message
		}
	}
	for _, key := range slices.Sorted(maps.Keys(mc.Labels)) {
		if strings.HasPrefix(key, clusterv1.LabelPrefixFeatureAddOn) {
			v.features += key + "=" + mc.Labels[key] + ","
		}
	}
	return v
}

// gather adds the add-ons of a cluster.
func (c *Controller) gather(ctx context.Context, mc *clusterv1.ManagedCluster) (State, error) {
	list, err := c.listAddOns(ctx, mc.Name)
	return State{Cluster: mc, AddOns: list, Told: func(addon string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.told[reconcile.Key{Namespace: mc.Name, Name: addon}]
	}}, err
}

// gatherAway reads one add-on and its cluster.
func (c *Controller) gatherAway(ctx context.Context, key reconcile.Key) (awayState, error) {
	s := awayState{Now: c.config.Clock.Now()}
	addon := &AddOn{}
	if err := c.reader.Get(ctx, key, addon); err != nil {
		if apierrors.IsNotFound(err) {
			return s, nil
		}
		return s, fmt.Errorf("reading managedclusteraddon %s: %w", key, err)
	}
	mc, err := c.readCluster(ctx, key.Namespace)
	if err != nil {
		return s, err
	}
	s.AddOn, s.Cluster = addon, mc
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Said = c.said[key]
	return s, nil
}

// conditionPlan returns the plan that sets one condition of an add-on.
func conditionPlan(live *unstructured.Unstructured, condition metav1.Condition, now time.Time) (reconcile.Plan, error) {
	status := AddOnStatus{}
	after := live.DeepCopy()
	found, _, err := unstructured.NestedMap(after.Object, "status")
	if err == nil && found != nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(found, &status)
	}
	if err != nil {
		return reconcile.Plan{}, fmt.Errorf("reading the conditions of managedclusteraddon %s/%s: %w", live.GetNamespace(), live.GetName(), err)
	}
	reconcile.SetCondition(&status.Conditions, condition, now)
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err == nil {
		err = unstructured.SetNestedField(after.Object, m["conditions"], "status", "conditions")
	}
	if err != nil {
		return reconcile.Plan{}, fmt.Errorf("writing the conditions of managedclusteraddon %s/%s: %w", live.GetNamespace(), live.GetName(), err)
	}
	return reconcile.Plan{Object: after}, nil
}
