// SPDX-License-Identifier: Apache-2.0

package addonhealth

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// State holds everything the decision on labels needs.
type State struct {
	// Cluster is the ManagedCluster.
	Cluster *clusterv1.ManagedCluster
	// AddOns are the add-ons in its namespace.
	AddOns []AddOn
	// Told reports whether the add-on was already reported as unable to have a label.
	Told func(addon string) bool
}

// Decide is pure: it brings the feature labels of one cluster up to date with its add-ons.
func Decide(s State) reconcile.Plan {
	if s.Cluster.DeletionTimestamp != nil || apimeta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ConditionAvailable) == nil {
		return reconcile.Plan{}
	}
	mc := s.Cluster.DeepCopy()
	plan := reconcile.Plan{Object: mc}
	wanted := map[string]string{}
	for i := range s.AddOns {
		a := &s.AddOns[i]
		if a.DeletionTimestamp != nil {
			continue
		}
		key, ok := labelKey(a.Name)
		if !ok {
			if !s.Told(a.Name) {
				plan.Events = append(plan.Events, tooLongEvent(mc.Name, a.Name))
			}
			continue
		}
		wanted[key] = labelValue(a)
	}
	maps.DeleteFunc(mc.Labels, func(key, _ string) bool {
		return strings.HasPrefix(key, clusterv1.LabelPrefixFeatureAddOn) && wanted[key] == ""
	})
	if mc.Labels == nil && len(wanted) > 0 {
		mc.Labels = map[string]string{}
	}
	maps.Copy(mc.Labels, wanted)
	return plan
}

// labelKey returns the key of an add-on's feature label; ok is false when the name does not make
// a valid key.
func labelKey(addon string) (key string, ok bool) {
	key = clusterv1.LabelPrefixFeatureAddOn + addon
	return key, len(validation.IsQualifiedName(key)) == 0
}

// labelValue returns the value of an add-on's feature label.
func labelValue(a *AddOn) string {
	switch c := a.available(); {
	case c != nil && c.Status == metav1.ConditionTrue:
		return clusterv1.FeatureAvailable
	case c != nil && c.Status == metav1.ConditionFalse:
		return clusterv1.FeatureUnhealthy
	}
	return clusterv1.FeatureUnreachable
}

func tooLongEvent(cluster, addon string) reconcile.Event {
	prefix := clusterv1.LabelPrefixFeatureAddOn[strings.Index(clusterv1.LabelPrefixFeatureAddOn, "/")+1:]
	return reconcile.Event{
		Type: corev1.EventTypeWarning, Reason: "AddOnNameTooLong", Namespace: cluster,
		Message: fmt.Sprintf("Add-on %s is not shown as a label of the cluster: the name has %d characters, a label allows %d; placements cannot select by it",
			addon, len(addon), validation.LabelValueMaxLength-len(prefix)),
	}
}

// repeat is the minimum time between two writes that set an add-on Unknown. An agent that
// reports add-ons but does not renew its lease sets it back at once, and without a pause the
// two would write as fast as they can.
const repeat = 10 * time.Second

// awayState holds everything the decision on one add-on needs.
type awayState struct {
	// Cluster is the add-on's cluster; nil when it does not exist.
	Cluster *clusterv1.ManagedCluster
	// AddOn is the add-on.
	AddOn *AddOn
	// Said is when the hub last set the add-on Unknown; zero if not since this process
	// started.
	Said time.Time
	// Now is the time of the decision.
	Now time.Time
}

// decideAway is pure: it returns the Unknown of a cluster as the condition of an add-on. Nothing
// else is copied. Nil leaves the add-on unchanged, later is then the delay before it is
// evaluated again; zero waits for the next event.
func decideAway(s awayState) (condition *metav1.Condition, later time.Duration) {
	if s.Cluster == nil {
		return nil, 0
	}
	c := apimeta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ConditionAvailable)
	if c == nil || c.Status != metav1.ConditionUnknown {
		return nil, 0
	}
	if have := s.AddOn.available(); have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
		return nil, 0
	}
	if rest := s.Said.Add(repeat).Sub(s.Now); !s.Said.IsZero() && rest > 0 {
		return nil, rest
	}
	return &metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: c.Status, Reason: c.Reason, Message: c.Message}, 0
}
