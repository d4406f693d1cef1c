// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// addon creates an add-on of a cluster.
func (s *scene) addon(t testing.TB, namespace, name string, finalizers ...string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": addonv1alpha1.GroupVersion.String(), "kind": "ManagedClusterAddOn",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{},
	}}
	u.SetFinalizers(finalizers)
	reached(t, func() error {
		_, err := s.dyn.Resource(addons).Namespace(namespace).Create(context.Background(), u, metav1.CreateOptions{})
		return err
	})
}

// reportAddOn sets Available of an add-on as the agent of its cluster does.
func reportAddOn(t testing.TB, agent dynamic.Interface, namespace, name string, status metav1.ConditionStatus) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []metav1.Condition{
		{Type: "Other", Status: "True", Reason: "Kept", LastTransitionTime: metav1.Now()},
		{
			Type:               addonv1alpha1.ConditionAvailable,
			Status:             status,
			Reason:             "ByTheAgent",
			Message:            "m",
			LastTransitionTime: metav1.Now(),
		},
	}}})
	require.NoError(t, err)
	_, err = agent.Resource(addons).Namespace(namespace).Patch(context.Background(), name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// addonAvailable returns the status of condition Available of an add-on, and its number
// of conditions.
func (s *scene) addonAvailable(t testing.TB, namespace, name string) (string, int) {
	t.Helper()
	a, err := typed.Get[addonv1alpha1.ManagedClusterAddOn](context.Background(), s.dyn, addons, namespace, name)
	require.NoError(t, err)
	for _, c := range a.Status.Conditions {
		if c.Type == addonv1alpha1.ConditionAvailable {
			return fmt.Sprintf("%s %s", c.Status, c.Reason), len(a.Status.Conditions)
		}
	}
	return "", len(a.Status.Conditions)
}

// features returns the feature labels of a cluster, without their prefix.
func features(mc *clusterv1.ManagedCluster) map[string]string {
	out := map[string]string{}
	for key, value := range mc.Labels {
		if name, ok := strings.CutPrefix(key, clusterv1.LabelPrefixFeatureAddOn); ok {
			out[name] = value
		}
	}
	return out
}

func labelled(want map[string]string) func(*clusterv1.ManagedCluster) bool {
	return func(mc *clusterv1.ManagedCluster) bool {
		got := features(mc)
		for name, value := range want {
			if got[name] != value {
				return false
			}
		}
		return len(got) == len(want)
	}
}

// events returns the Events with a reason in a namespace.
func (s *scene) events(t testing.TB, namespace, reason string) []string {
	t.Helper()
	list, err := s.kube.EventsV1().Events(namespace).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	var out []string
	for _, e := range list.Items {
		if e.Reason == reason {
			out = append(out, e.ReportingController+": "+e.Note)
		}
	}
	return out
}

func TestFeatureLabelsFollowAddOns(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "featured", "a")
	long := strings.Repeat("x", 60)
	for _, name := range []string{"good", "bad", "gone", "silent", "held", long} {
		var finalizers []string
		if name == "held" {
			finalizers = []string{agentFinalizer}
		}
		s.addon(t, "featured", name, finalizers...)
		if name != "silent" {
			status := map[string]metav1.ConditionStatus{"bad": "False", "gone": "Unknown"}[name]
			if status == "" {
				status = "True"
			}
			reportAddOn(t, a.dyn, "featured", name, status)
		}
	}
	require.Empty(t, features(s.get(t, "featured")), "nothing is said of a cluster that was never heard of")
	a.renew(t, "featured", 0)
	a.report(t, "featured", metav1.ConditionTrue)
	s.await(
		t, "featured", "reports its add-ons",
		labelled(map[string]string{"good": "available", "bad": "unhealthy", "gone": "unreachable", "silent": "unreachable", "held": "available"}),
	)
	require.True(t, eventually(func() bool { return len(s.events(t, "featured", "AddOnNameTooLong")) == 1 }))

	reportAddOn(t, a.dyn, "featured", "bad", metav1.ConditionTrue)
	for _, name := range []string{"gone", "held"} {
		require.NoError(t, s.dyn.Resource(addons).Namespace("featured").Delete(context.Background(), name, metav1.DeleteOptions{}))
	}
	require.NoError(
		t,
		patch(s.dyn, "featured", `{"metadata":{"labels":{"`+clusterv1.LabelPrefixFeatureAddOn+`good":"lie","`+clusterv1.LabelPrefixFeatureAddOn+`no":"available"}}}`),
	)
	s.await(t, "featured", "follows", labelled(map[string]string{"good": "available", "bad": "available", "silent": "unreachable"}))
	s.letGo(t, addons, "featured", "held")

	s.joined(t, a, "featured")
	version := func() string { return s.get(t, "featured").ResourceVersion }
	before := rests(t, version, time.Second)
	reportAddOn(t, a.dyn, "featured", "good", metav1.ConditionTrue)
	never(t, func() bool { return version() != before }, time.Second, "what changes nothing is not written")
	require.Len(t, s.events(t, "featured", "AddOnNameTooLong"), 1)
}

func TestAnUnreachableClusterMakesItsAddOnsUnknownUntilItsAgentIsBack(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	a := s.register(t, "lost", "a")
	s.addon(t, "lost", "metrics")
	reportAddOn(t, a.dyn, "lost", "metrics", metav1.ConditionTrue)
	a.renew(t, "lost", 0)
	a.report(t, "lost", metav1.ConditionFalse)
	s.await(t, "lost", "reports its add-on", labelled(map[string]string{"metrics": "available"}))
	got, _ := s.addonAvailable(t, "lost", "metrics")
	require.Equal(t, "True ByTheAgent", got, "False is not copied")

	require.NoError(t, patch(s.dyn, "lost", `{"spec":{"leaseDurationSeconds":1}}`))
	s.await(t, "lost", "is away", conditionIs(clusterv1.ConditionAvailable, metav1.ConditionUnknown, ""))
	require.True(t, eventually(func() bool {
		got, n := s.addonAvailable(t, "lost", "metrics")
		return got == "Unknown "+clusterv1.ReasonManagedClusterLeaseUpdateStopped && n == 2
	}), "the other conditions stay")
	s.await(t, "lost", "reports it", labelled(map[string]string{"metrics": "unreachable"}))
	s.addon(t, "lost", "late")
	require.True(t, eventually(func() bool {
		got, _ := s.addonAvailable(t, "lost", "late")
		return strings.HasPrefix(got, "Unknown")
	}), "also one that comes later")

	require.NoError(t, patch(s.dyn, "lost", `{"spec":{"leaseDurationSeconds":60}}`))
	a.renew(t, "lost", 0)
	a.report(t, "lost", metav1.ConditionTrue)
	never(t, func() bool {
		got, _ := s.addonAvailable(t, "lost", "metrics")
		return !strings.HasPrefix(got, "Unknown")
	}, time.Second, "True is not copied")
	reportAddOn(t, a.dyn, "lost", "metrics", metav1.ConditionTrue)
	s.await(t, "lost", "is reported by its agent", labelled(map[string]string{"metrics": "available", "late": "unreachable"}))
	got, _ = s.addonAvailable(t, "lost", "metrics")
	require.Equal(t, "True ByTheAgent", got)
}

// The hub contradicts an agent that reports on add-ons but does not renew its lease, but
// not as fast as the two can write.
func TestHubAndAgentDoNotFightOverAnAddOn(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	a := s.register(t, "fighting", "a")
	s.addon(t, "fighting", "metrics")
	require.NoError(t, patch(s.dyn, "fighting", `{"spec":{"leaseDurationSeconds":1}}`))
	a.report(t, "fighting", metav1.ConditionTrue)
	away := func() bool {
		got, _ := s.addonAvailable(t, "fighting", "metrics")
		return strings.HasPrefix(got, "Unknown")
	}
	require.True(t, eventually(away))
	requirePatience(t, func() *metav1.Condition {
		addOn, err := typed.Get[addonv1alpha1.ManagedClusterAddOn](t.Context(), s.dyn, addons, "fighting", "metrics")
		require.NoError(t, err)
		return apimeta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	}, func() { reportAddOn(t, a.dyn, "fighting", "metrics", metav1.ConditionTrue) })
	require.True(t, eventually(away), "it is contradicted in the end")
}

// At rest, neither the add-ons nor their clusters are written.
func TestAddOnsAtRestCostNoWrite(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	names := []string{"rest-up", "rest-away"}
	for _, name := range names {
		a := s.register(t, name, "a")
		for i := range 5 {
			s.addon(t, name, fmt.Sprintf("addon%d", i))
			reportAddOn(t, a.dyn, name, fmt.Sprintf("addon%d", i), metav1.ConditionTrue)
		}
		a.renew(t, name, 0)
		a.report(t, name, metav1.ConditionTrue)
	}
	for _, name := range names {
		s.await(t, name, "is held", func(mc *clusterv1.ManagedCluster) bool {
			return tainted()(mc) && mc.Annotations[clusterv1.AnnotationAgentName] != ""
		})
	}
	require.NoError(t, patch(s.dyn, "rest-away", `{"spec":{"leaseDurationSeconds":1}}`))
	s.await(t, "rest-away", "has lost all", func(mc *clusterv1.ManagedCluster) bool {
		f := features(mc)
		for i := range 5 {
			if f[fmt.Sprintf("addon%d", i)] != clusterv1.FeatureUnreachable {
				return false
			}
		}
		return len(mc.Spec.Taints) == 1
	})
	s.await(t, "rest-up", "has all", func(mc *clusterv1.ManagedCluster) bool { return len(features(mc)) == 5 && len(mc.Spec.Taints) == 0 })
	state := func() string {
		var out []string
		for _, name := range names {
			out = append(out, s.get(t, name).ResourceVersion)
			list, err := s.dyn.Resource(addons).Namespace(name).List(context.Background(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, o := range list.Items {
				out = append(out, o.GetName()+o.GetResourceVersion())
			}
			out = append(out, s.events(t, name, "AvailableUnknown")...)
		}
		return strings.Join(out, " ")
	}
	soon(t, func() bool { return len(s.events(t, "rest-away", "AvailableUnknown")) == 1 }, "the Event follows the change it reports")
	rests(t, state, 3*time.Second)
}
