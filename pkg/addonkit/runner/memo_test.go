// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/packed"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// counted is an add-on that counts how often it is called. Without inputs it does not say
// what its answers depend on.
type counted struct {
	value             string
	inputs            bool
	broken            error
	rendered, granted atomic.Int32
}

func (*counted) Options() addonkit.Options { return addonkit.Options{Name: "web"} }

func (c *counted) Manifests(context.Context, addonkit.Instance) ([]runtime.Object, error) {
	c.rendered.Add(1)
	if c.broken != nil {
		return nil, c.broken
	}
	return []runtime.Object{&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a"},
		Data:       map[string]string{"value": c.value},
	}}, nil
}

func (c *counted) Registrations(context.Context, addonkit.Instance) ([]addonv1alpha1.RegistrationConfig, error) {
	c.granted.Add(1)
	return []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/" + c.value, Subject: addonv1alpha1.Subject{User: "u"}}}, nil
}

func (c *counted) Inputs(addonkit.Instance) (string, bool) { return c.value, c.inputs }

// table is a runner whose loops are called by the test, on an API server in memory.
type table struct {
	*runner
	t     *testing.T
	addOn *counted
	key   reconcile.Key
}

var (
	clusterAPI  = clusterv1.GroupVersion.WithResource("managedclusters")
	instanceAPI = addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")
	workAPI     = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)
)

// set is a runner of an add-on with one instance, whose gates are open.
func set(t *testing.T, c *counted) *table {
	t.Helper()
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false) // the memory only lists
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		clusterAPI: "ManagedClusterList", addonv1alpha1.GroupVersion.WithResource("clustermanagementaddons"): "ClusterManagementAddOnList",
		instanceAPI: "ManagedClusterAddOnList", workAPI: "ManifestWorkList",
		rolesAPI: "RoleList", bindingsAPI: "RoleBindingList", certificates: "CertificateSigningRequestList",
	})
	// The server in memory hands watchers the objects that it stores, which they change: give them
	// copies. It also delivers nothing that was written before a watch began: wait for all watches.
	var began atomic.Int32
	client.PrependWatchReactor("*", func(a clienttesting.Action) (bool, apiwatch.Interface, error) {
		w, err := client.Tracker().Watch(a.GetResource(), a.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		began.Add(1)
		return true, apiwatch.Filter(w, func(e apiwatch.Event) (apiwatch.Event, bool) {
			e.Object = e.Object.DeepCopyObject()
			return e, true
		}), nil
	})
	r, err := New(Config{Client: client, Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}, c)
	require.NoError(t, err)
	s := &table{runner: r.runner, t: t, addOn: c, key: reconcile.Key{Namespace: "c1", Name: "web"}}
	s.create(clusterAPI, &clusterv1.ManagedCluster{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"}, ObjectMeta: metav1.ObjectMeta{Name: "c1"},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	})
	s.create(instanceAPI, &addonv1alpha1.ManagedClusterAddOn{
		TypeMeta: metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web", UID: "6ba7b810-9dad-11d1-80b4-00c04fd430c9", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ClusterManagementAddOn", Name: "web", UID: "u"}}},
		Status: addonv1alpha1.ManagedClusterAddOnStatus{
			Conditions: []metav1.Condition{{Type: addonv1alpha1.ConditionRegistrationApplied, Status: metav1.ConditionTrue, Reason: "R"}},
		},
	})
	for _, w := range s.watched {
		go func() { _ = w.Run(t.Context()) }()
		require.NoError(t, w.WaitSynced(t.Context()))
	}
	s.eventually(func() bool { return int(began.Load()) == len(s.watched) })
	return s
}

func (s *table) create(api schema.GroupVersionResource, o reconcile.Object) {
	s.t.Helper()
	u, err := typed.ToUnstructured(o)
	require.NoError(s.t, err)
	_, err = s.Client.Resource(api).Namespace(o.GetNamespace()).Create(s.t.Context(), u, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// patch writes an object, and waits until the runner sees what it waits for.
func (s *table) patch(api schema.GroupVersionResource, name, body string, sees func() bool) {
	s.t.Helper()
	_, err := s.Client.Resource(api).Namespace("c1").Patch(s.t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(s.t, err)
	s.eventually(sees)
}

func (s *table) eventually(sees func() bool) {
	s.t.Helper()
	require.Eventually(s.t, sees, 2*time.Minute, time.Millisecond) // longer than a machine may stand still
}

// pass runs both loops once, and returns how often the add-on was called.
func (s *table) pass() (rendered, granted int32) {
	s.t.Helper()
	r, g := s.addOn.rendered.Load(), s.addOn.granted.Load()
	_, err := s.reconcileRegistration(s.t.Context(), s.key)
	require.NoError(s.t, err)
	_, err = s.reconcileDeploy(s.t.Context(), s.key)
	require.NoError(s.t, err)
	return s.addOn.rendered.Load() - r, s.addOn.granted.Load() - g
}

// settles waits until the runner has seen what it wrote, and nothing is left to do.
func (s *table) settles() {
	s.t.Helper()
	s.eventually(func() bool {
		work, a := s.live(), s.instances.get(s.key)
		return work != nil && strings.Contains(string(work.Spec.Workload.Manifests[0].Raw), s.addOn.value) &&
			len(a.Status.Registrations) == 1 && strings.HasSuffix(a.Status.Registrations[0].SignerName, s.addOn.value)
	})
	// A cached work that is older costs a rendering.
	for range 10_000 {
		if rendered, granted := s.pass(); rendered == 0 && granted == 0 {
			return
		}
	}
	s.t.Fatal("each pass renders")
}

// live returns the current work.
func (s *table) live() *workv1.ManifestWork {
	w, err := typed.Get[workv1.ManifestWork](s.t.Context(), s.Client, workAPI, "c1", "addon-web-deploy-0")
	if err != nil {
		return nil
	}
	return w
}

func (s *table) says(condition string) bool {
	return apimeta.FindStatusCondition(s.instances.get(s.key).Status.Conditions, condition) != nil
}

// write sets a condition as another client.
func (s *table) write(condition string) {
	s.t.Helper()
	a := s.instances.get(s.key)
	body, err := json.Marshal(map[string]any{"status": map[string]any{
		"conditions": append(a.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "R"}),
	}})
	require.NoError(s.t, err)
	s.patch(instanceAPI, "web", string(body), func() bool { return s.says(condition) })
}

func TestAStatusCostsNoRenderingAndEachInputDoes(t *testing.T) {
	s := set(t, &counted{value: "one", inputs: true})
	rendered, granted := s.pass()
	require.EqualValues(t, []int32{1, 1}, []int32{rendered, granted}, "it is new")
	s.settles()
	nothing := func(why string) {
		t.Helper()
		rendered, granted := s.pass()
		require.EqualValues(t, []int32{0, 0}, []int32{rendered, granted}, why)
	}
	nothing("nothing happened")
	s.write("Foreign")
	nothing("a status written by another client")
	s.patch(workAPI, "addon-web-deploy-0", `{"status":{"conditions":[{"type":"Applied","status":"True","reason":"R",`+
		`"lastTransitionTime":"2030-01-01T00:00:00Z"}]}}`,
		func() bool { return len(s.works.list(s.key)[0].Status.Conditions) == 1 })
	nothing("the report of an agent")
	s.eventually(func() bool { return s.says(addonv1alpha1.ConditionManifestApplied) })
	nothing("its own status")

	s.addOn.value = "two"
	rendered, granted = s.pass()
	require.EqualValues(t, []int32{1, 1}, []int32{rendered, granted}, "an input changed")
	require.Contains(t, string(s.live().Spec.Workload.Manifests[0].Raw), "two")
	s.settles()
	nothing("it has that")

	before := s.works.list(s.key)[0].Spec.Workload.Manifests[0].Raw
	s.patch(workAPI, "addon-web-deploy-0", `{"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap",`+
		`"metadata":{"namespace":"web","name":"a"}}]}}}`,
		func() bool { return string(s.works.list(s.key)[0].Spec.Workload.Manifests[0].Raw) != string(before) })
	rendered, _ = s.pass()
	require.EqualValues(t, 1, rendered, "another client changed the work")
	require.Contains(t, string(s.live().Spec.Workload.Manifests[0].Raw), "two", "it is whole again")
	s.settles()

	s.patch(
		instanceAPI, "web", `{"metadata":{"uid":"6ba7b810-9dad-11d1-80b4-00c04fd430c0"}}`,
		func() bool { return strings.HasSuffix(string(s.instances.get(s.key).UID), "0") },
	)
	rendered, granted = s.pass()
	require.EqualValues(t, []int32{1, 1}, []int32{rendered, granted}, "another instance of the name")
	require.NoError(t, s.Client.Resource(instanceAPI).Namespace("c1").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	s.eventually(func() bool { return s.instances.get(s.key) == nil })
	s.pass()
	require.Empty(t, s.drawn.held)
	require.Empty(t, s.asked.held)
}

func TestWhoDoesNotTellItsInputsIsAsked(t *testing.T) {
	for name, c := range map[string]*counted{"no inputs": {
		value: "one",
	}, "an error": {
		value:  "one",
		inputs: true,
		broken: errors.New("no"),
	}} {
		t.Run(name, func(t *testing.T) {
			s := set(t, c)
			for range 3 {
				rendered, _ := s.pass()
				require.EqualValues(t, 1, rendered)
			}
		})
	}
}

func TestNothingIsRenderedBeforeItsTime(t *testing.T) {
	c := &counted{value: "one"}
	s := set(t, c)
	s.patch(instanceAPI, "web", `{"status":{"conditions":[{"type":"Other","status":"True"}]}}`, func() bool { return s.says("Other") })
	_, err := s.reconcileDeploy(t.Context(), s.key)
	require.NoError(t, err)
	require.Zero(t, c.rendered.Load(), "it is not registered yet")
}

func TestAnswersAreForgottenBeforeTheyAreTooMany(t *testing.T) {
	m := memo[asked]{words: &packed.Dictionary{}}
	for i := range maxAnswers + 1 {
		m.hold(reconcile.Key{Name: string(rune(i + 1000))}, digest.Sum{}, &asked{})
	}
	require.Len(t, m.held, 1)
}
