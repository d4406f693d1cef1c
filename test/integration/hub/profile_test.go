// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	profiles    = multiclusterv1alpha1.GroupVersion.WithResource("clusterprofiles")
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// TestClusterProfiles switches the gate on one hub, because the gate applies to the whole
// hub.
func TestClusterProfiles(t *testing.T) {
	t.Parallel()
	s := ownHub(t)
	pid := hubPID(t, s)
	require.False(t, s.hasProfiles(t), "without the gate there is no such API")

	t.Run("another release of the API is left alone, and the hub says so", s.testForeignDefinition)
	t.Run("a profile stands in each namespace that reaches the cluster", s.testProfilesFollow)
	t.Run("selectors decide, also when the size of a set stays", s.testProfilesBySelector)
	t.Run("status and set are shown", s.testProfileShows)
	t.Run("foreign profiles are never touched, own ones are put right", s.testForeignProfiles)
	t.Run("what goes has no profile", s.testProfilesGo)
	t.Run("the API comes back", s.testDefinitionGoes)
	t.Run("a hub at rest writes nothing", s.testProfilesAtRest)
	t.Run("without the gate they go", s.testGateOff)
	require.Equal(t, pid, hubPID(t, s), "it was the same process all the time")
	t.Run("with the hub they go, and the API stays", s.testHubGoes)
}

// gate switches ClusterProfile.
func (s *scene) gate(t testing.TB, mode string) {
	t.Helper()
	body := `{"spec":{"registrationConfiguration":{"featureGates":[{"feature":"ClusterProfile","mode":"` + mode + `"}]}}}`
	_, err := s.dyn.Resource(managers).Patch(t.Context(), hub.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(t, err)
}

// awaitKept waits for what the ClusterManager reports about profiles; an empty status
// means that it reports nothing.
func (s *scene) awaitKept(t testing.TB, status metav1.ConditionStatus, message string) {
	t.Helper()
	var last *metav1.Condition
	require.True(t, eventually(func() bool {
		cm, err := typed.Get[operatorv1.ClusterManager](t.Context(), s.dyn, managers, "", hub.Name)
		require.NoError(t, err)
		last = apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionClusterProfilesKept)
		if last == nil {
			return status == ""
		}
		return last.Status == status && strings.Contains(last.Message, message)
	}), "%s %q: %+v", status, message, &last)
	s.awaitHub(t)
}

func (s *scene) hasProfiles(t testing.TB) bool {
	t.Helper()
	_, err := s.dyn.Resource(definitions).Get(t.Context(), crd.ClusterProfiles, metav1.GetOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	return err == nil
}

// awaitProfiles waits until a namespace has exactly these profiles.
func (s *scene) awaitProfiles(t testing.TB, namespace string, want ...string) {
	t.Helper()
	var last []string
	if !eventually(func() bool {
		list, err := s.dyn.Resource(profiles).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		last = []string{}
		for _, p := range list.Items {
			last = append(last, p.GetName())
		}
		slices.Sort(last)
		return cmp.Equal(last, append([]string{}, want...))
	}) {
		t.Errorf("profiles in %s: %v, want %v", namespace, last, want)
		s.logs(t)
		t.FailNow()
	}
}

// awaitProfile waits until a profile is as wanted.
func (s *scene) awaitProfile(t testing.TB, namespace, name string, ok func(*multiclusterv1alpha1.ClusterProfile) bool) *multiclusterv1alpha1.ClusterProfile {
	t.Helper()
	var last *multiclusterv1alpha1.ClusterProfile
	if !eventually(func() bool {
		p, err := typed.Get[multiclusterv1alpha1.ClusterProfile](t.Context(), s.dyn, profiles, namespace, name)
		last = p
		return err == nil && ok(p)
	}) {
		raw, _ := json.MarshalIndent(last, "", " ")
		t.Errorf("profile %s/%s: %s", namespace, name, raw)
		s.logs(t)
		t.FailNow()
	}
	return last
}

func (s *scene) testForeignDefinition(t *testing.T) {
	foreign, err := crd.Get(crd.ClusterProfiles)
	require.NoError(t, err)
	versions, _, err := unstructured.NestedSlice(foreign.Object, "spec", "versions")
	require.NoError(t, err)
	versions[0].(map[string]any)["name"] = "v1alpha2"
	require.NoError(t, unstructured.SetNestedSlice(foreign.Object, versions, "spec", "versions"))
	foreign, err = s.dyn.Resource(definitions).Create(t.Context(), foreign, metav1.CreateOptions{})
	require.NoError(t, err)

	s.gate(t, "Enable")
	s.awaitKept(t, metav1.ConditionFalse, "serves v1alpha2 and not v1alpha1")
	live, err := s.dyn.Resource(definitions).Get(t.Context(), crd.ClusterProfiles, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, foreign.GetGeneration(), live.GetGeneration())
	require.Empty(t, live.GetLabels())
	require.NoError(t, create(s.dyn, cluster("meanwhile")), "the hub works")
	s.await(t, "meanwhile", "is seen by the other loops", func(mc *clusterv1.ManagedCluster) bool { return len(mc.Spec.Taints) == 1 })
	require.NoError(t, s.dyn.Resource(clusters).Delete(t.Context(), "meanwhile", metav1.DeleteOptions{}))

	require.NoError(t, s.dyn.Resource(definitions).Delete(t.Context(), crd.ClusterProfiles, metav1.DeleteOptions{}))
	s.awaitKept(t, metav1.ConditionTrue, "ClusterProfiles are kept")
	require.True(t, s.hasProfiles(t), "the hub brings its own where there is none")
}

func (s *scene) testProfilesFollow(t *testing.T) {
	for _, ns := range []string{"one", "two", "three"} {
		s.open(t, ns)
	}
	s.awaitProfiles(t, "one")
	s.member(t, "p1", map[string]string{clusterv1.LabelClusterSet: "blue", "env": "dev"})
	s.member(t, "p2", map[string]string{clusterv1.LabelClusterSet: "blue", "env": "prod"})
	s.member(t, "p3", map[string]string{clusterv1.LabelClusterSet: "red"})
	require.NoError(t, s.bind(t, bindings, "one", "blue", "{clusterSet: blue}"))
	s.awaitBound(t, "one", "blue", metav1.ConditionFalse, clusterv1beta2.ReasonClusterSetNotFound, "")
	s.awaitProfiles(t, "one")
	require.NoError(t, s.makeSet(t, "blue", "{}"))
	s.awaitProfiles(t, "one", "p1", "p2")
	require.NoError(t, s.bind(t, oldBindings, "two", "blue", "{clusterSet: blue}"))
	s.awaitProfiles(t, "two", "p1", "p2")
	s.awaitProfiles(t, "three")

	// Overlapping sets make one profile; one of them is enough for it to stay.
	require.NoError(t, s.bind(t, bindings, "one", "global", "{clusterSet: global}"))
	s.awaitProfiles(t, "one", "p1", "p2", "p3")
	kept := s.awaitProfile(t, "one", "p1", func(*multiclusterv1alpha1.ClusterProfile) bool { return true })
	s.unbind(t, "one", "global")
	s.awaitProfiles(t, "one", "p1", "p2")
	require.Equal(t, kept.UID, s.awaitProfile(t, "one", "p1", func(*multiclusterv1alpha1.ClusterProfile) bool { return true }).UID)

	s.relabel(t, "p2", map[string]any{clusterv1.LabelClusterSet: "red"})
	s.awaitProfiles(t, "one", "p1")
	s.awaitProfiles(t, "two", "p1")
	require.NoError(t, s.dyn.Resource(sets).Delete(t.Context(), "blue", metav1.DeleteOptions{}))
	s.awaitProfiles(t, "one")
	require.NoError(t, s.makeSet(t, "blue", "{}"))
	s.awaitProfiles(t, "one", "p1")
	s.unbind(t, "one", "blue")
	s.awaitProfiles(t, "one")
	s.awaitProfiles(t, "two", "p1")
}

func (s *scene) testProfilesBySelector(t *testing.T) {
	s.open(t, "selected")
	for _, name := range []string{"s1", "s2", "s3"} {
		s.member(t, name, map[string]string{"env": name})
	}
	selector := func(text string) string {
		return "{clusterSelector: {selectorType: LabelSelector, labelSelector: " + text + "}}"
	}
	require.NoError(t, s.makeSet(t, "some", selector("{matchExpressions: [{key: env, operator: In, values: [s1, s2]}]}")))
	require.NoError(t, s.makeSet(t, "first", selector("{matchLabels: {env: s1}}")))
	require.NoError(t, s.bind(t, bindings, "selected", "some", "{clusterSet: some}"))
	require.NoError(t, s.bind(t, bindings, "selected", "first", "{clusterSet: first}"))
	s.awaitProfiles(t, "selected", "s1", "s2")
	// The set keeps its size but changes its members.
	s.patchSet(t, "some", `{"spec":{"clusterSelector":{"labelSelector":{"matchExpressions":[{"key":"env","operator":"In","values":["s1","s3"]}]}}}}`)
	s.awaitProfiles(t, "selected", "s1", "s3")
	s.patchSet(t, "some", `{"spec":{"clusterSelector":{"labelSelector":{"matchExpressions":[{"key":"env","operator":"In","values":["nobody"]}]}}}}`)
	s.awaitProfiles(t, "selected", "s1")
	s.patchSet(t, "some", `{"spec":{"clusterSelector":{"labelSelector":{"matchExpressions":null}}}}`)
	s.awaitProfiles(t, "selected", "s1", "s2", "s3")
}

func (s *scene) testProfileShows(t *testing.T) {
	s.open(t, "shown")
	s.member(t, "seen", map[string]string{clusterv1.LabelClusterSet: "shows"})
	require.NoError(t, s.makeSet(t, "shows", "{}"))
	require.NoError(t, s.makeSet(t, "shows-all", "{clusterSelector: {selectorType: LabelSelector, labelSelector: {matchLabels: {shown: 'yes'}}}}"))
	require.NoError(t, s.bind(t, bindings, "shown", "shows", "{clusterSet: shows}"))
	require.NoError(t, s.bind(t, bindings, "shown", "shows-all", "{clusterSet: shows-all}"))
	s.relabel(t, "seen", map[string]any{"shown": "yes"})
	require.NoError(t, patch(s.dyn, "seen", `{"status":{"version":{"kubernetes":"v1.36.3"},"clusterClaims":[{"name":"region","value":"north"}],
		"conditions":[{"type":"ManagedClusterJoined","status":"True","reason":"ManagedClusterJoined","message":"j","lastTransitionTime":"2026-08-01T12:00:00Z"},
		{"type":"ManagedClusterConditionAvailable","status":"True","reason":"ManagedClusterAvailable","message":"a",
		"lastTransitionTime":"2026-08-01T12:00:00Z"}]}}`, "status"))
	p := s.awaitProfile(t, "shown", "seen", func(p *multiclusterv1alpha1.ClusterProfile) bool {
		return apimeta.IsStatusConditionTrue(p.Status.Conditions, multiclusterv1alpha1.ConditionControlPlaneHealthy) && len(p.Status.Properties) == 1
	})
	require.Equal(t, "v1.36.3", p.Status.Version.Kubernetes)
	require.Equal(t, []multiclusterv1alpha1.Property{{Name: "region", Value: "north"}}, p.Status.Properties)
	joined := apimeta.FindStatusCondition(p.Status.Conditions, multiclusterv1alpha1.ConditionJoined)
	require.Equal(t, []any{metav1.ConditionTrue, "ManagedClusterJoined", "j"}, []any{joined.Status, joined.Reason, joined.Message})
	require.Equal(t, "seen", p.Spec.DisplayName)
	require.Equal(t, "open-cluster-management", p.Spec.ClusterManager.Name)
	require.Equal(t, map[string]string{
		"x-k8s.io/cluster-manager": "open-cluster-management", "open-cluster-management.io/cluster-name": "seen", "multicluster.x-k8s.io/clusterset": "shows",
	}, p.Labels)

	// What others add to the status stays.
	other := `{"status":{"accessProviders":[{"name":"somebody"}]}}`
	_, err := s.dyn.Resource(profiles).Namespace("shown").Patch(t.Context(), "seen", types.MergePatchType, []byte(other), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	require.NoError(t, patch(s.dyn, "seen", `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"elsewhere"}}}`))
	require.NoError(t, patch(s.dyn, "seen", `{"status":{"version":{"kubernetes":"v1.37.0"},"clusterClaims":null,
		"conditions":[{"type":"ManagedClusterConditionAvailable","status":"False","reason":"Down","message":"d",
		"lastTransitionTime":"2026-08-01T13:00:00Z"}]}}`, "status"))
	s.awaitProfile(t, "shown", "seen", func(p *multiclusterv1alpha1.ClusterProfile) bool {
		return p.Status.Version.Kubernetes == "v1.37.0" && len(p.Status.Properties) == 0 &&
			apimeta.IsStatusConditionFalse(p.Status.Conditions, multiclusterv1alpha1.ConditionControlPlaneHealthy) &&
			apimeta.FindStatusCondition(p.Status.Conditions, multiclusterv1alpha1.ConditionJoined) == nil &&
			p.Labels[multiclusterv1alpha1.LabelClusterSet] == "elsewhere"
	})
	u, err := s.dyn.Resource(profiles).Namespace("shown").Get(t.Context(), "seen", metav1.GetOptions{})
	require.NoError(t, err)
	access, found, err := unstructured.NestedSlice(u.Object, "status", "accessProviders")
	require.NoError(t, err)
	require.True(t, found)
	require.Len(t, access, 1)

	// The address that the cluster publishes is beside it, with its authority.
	ca := base64.StdEncoding.EncodeToString(s.Config.CAData)
	require.NoError(t, patch(s.dyn, "seen", `{"spec":{"managedClusterClientConfigs":[{"url":"https://seen:6443","caBundle":"`+ca+`"}]}}`))
	p = s.awaitProfile(t, "shown", "seen", func(p *multiclusterv1alpha1.ClusterProfile) bool { return len(p.Status.AccessProviders) == 2 })
	require.JSONEq(t, `{"name":"somebody"}`, string(p.Status.AccessProviders[0].Raw))
	require.JSONEq(t, `{"name":"open-cluster-management","cluster":{"server":"https://seen:6443","certificate-authority-data":"`+ca+`",
		"extensions":[{"name":"client.authentication.k8s.io/exec","extension":{"clusterName":"seen"}}]}}`, string(p.Status.AccessProviders[1].Raw))
	require.NoError(t, patch(s.dyn, "seen", `{"spec":{"managedClusterClientConfigs":null}}`))
	s.awaitProfile(t, "shown", "seen", func(p *multiclusterv1alpha1.ClusterProfile) bool { return len(p.Status.AccessProviders) == 1 })
}

// foreign creates a profile of another manager.
func (s *scene) foreign(t testing.TB, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u := parsed(
		t,
		`{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, `+
			`metadata: {labels: {x-k8s.io/cluster-manager: other}}, spec: {displayName: d, clusterManager: {name: other}}}`,
	)
	u.SetName(name)
	u, err := s.dyn.Resource(profiles).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	return u
}

func (s *scene) testForeignProfiles(t *testing.T) {
	s.open(t, "foreign")
	other := s.foreign(t, "foreign", "f1")
	stray := s.foreign(t, "foreign", "no-cluster")
	s.member(t, "f1", map[string]string{clusterv1.LabelClusterSet: "foreigners"})
	s.member(t, "f2", map[string]string{clusterv1.LabelClusterSet: "foreigners"})
	require.NoError(t, s.makeSet(t, "foreigners", "{}"))
	require.NoError(t, s.bind(t, bindings, "foreign", "foreigners", "{clusterSet: foreigners}"))
	s.awaitProfiles(t, "foreign", "f1", "f2", "no-cluster")
	require.True(t, eventually(func() bool { return len(s.events(t, "foreign", "ClusterProfileNameTaken")) == 1 }), "an Event says that f1 is not shown")

	api := s.dyn.Resource(profiles).Namespace("foreign")
	own := s.awaitProfile(t, "foreign", "f2", func(*multiclusterv1alpha1.ClusterProfile) bool { return true })
	_, err := api.Patch(
		t.Context(), "f2", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"x-k8s.io/cluster-manager":null,"mine":"stays"}},"spec":{"displayName":"x"}}`),
		metav1.PatchOptions{},
	)
	require.NoError(t, err)
	own = s.awaitProfile(t, "foreign", "f2", func(p *multiclusterv1alpha1.ClusterProfile) bool {
		return p.Labels[multiclusterv1alpha1.LabelClusterManager] == "open-cluster-management" && p.Labels["mine"] == "stays" &&
			p.Spec.DisplayName == "f2" && p.UID == own.UID
	})
	_, err = api.Patch(t.Context(), "f2", types.MergePatchType, []byte(`{"spec":{"clusterManager":{"name":"other"}}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsInvalid(err), "the manager cannot be changed: %v", err)
	require.NoError(t, api.Delete(t.Context(), "f2", metav1.DeleteOptions{}))
	s.awaitProfile(t, "foreign", "f2", func(p *multiclusterv1alpha1.ClusterProfile) bool { return p.UID != own.UID })

	s.unbind(t, "foreign", "foreigners")
	s.awaitProfiles(t, "foreign", "f1", "no-cluster")
	for _, u := range []*unstructured.Unstructured{other, stray} {
		live, err := api.Get(t.Context(), u.GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, u.GetResourceVersion(), live.GetResourceVersion())
	}
}

func (s *scene) testProfilesGo(t *testing.T) {
	s.open(t, "goes")
	s.member(t, "g1", map[string]string{clusterv1.LabelClusterSet: "going"})
	s.member(t, "g2", map[string]string{clusterv1.LabelClusterSet: "going"})
	require.NoError(t, s.makeSet(t, "going", "{}"))
	require.NoError(t, s.bind(t, bindings, "goes", "going", "{clusterSet: going}"))
	s.awaitProfiles(t, "goes", "g1", "g2")
	require.NoError(t, patch(s.dyn, "g1", `{"metadata":{"finalizers":["example.com/held"]}}`))
	require.NoError(t, s.dyn.Resource(clusters).Delete(t.Context(), "g1", metav1.DeleteOptions{}))
	s.awaitProfiles(t, "goes", "g2")
	require.NotNil(t, s.get(t, "g1"), "the cluster itself is still there")
	require.NoError(t, patch(s.dyn, "g1", `{"metadata":{"finalizers":null}}`))
	require.NoError(t, s.dyn.Resource(clusters).Delete(t.Context(), "g2", metav1.DeleteOptions{}))
	s.awaitProfiles(t, "goes")

	// A terminating namespace gets no new profile, and its removal is not held up.
	_, err := s.kube.CoreV1().ConfigMaps("goes").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/held"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.kube.CoreV1().Namespaces().Delete(t.Context(), "goes", metav1.DeleteOptions{}))
	s.member(t, "g3", map[string]string{clusterv1.LabelClusterSet: "going"})
	s.awaitEmpty(t, "going", false, "1 ManagedClusters selected")
	s.awaitProfiles(t, "goes")
	_, err = s.kube.CoreV1().ConfigMaps("goes").Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.True(t, eventually(func() bool {
		_, err := s.kube.CoreV1().Namespaces().Get(t.Context(), "goes", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}))
}

func (s *scene) testDefinitionGoes(t *testing.T) {
	s.open(t, "again")
	s.member(t, "a1", map[string]string{clusterv1.LabelClusterSet: "agains"})
	require.NoError(t, s.makeSet(t, "agains", "{}"))
	require.NoError(t, s.bind(t, bindings, "again", "agains", "{clusterSet: agains}"))
	s.awaitProfiles(t, "again", "a1")
	live, err := s.dyn.Resource(definitions).Get(t.Context(), crd.ClusterProfiles, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, reconcile.Delete(t.Context(), s.dyn, reconcile.Target{Resource: definitions, Name: crd.ClusterProfiles, UID: live.GetUID()}))
	require.True(t, eventually(func() bool {
		again, err := s.dyn.Resource(definitions).Get(t.Context(), crd.ClusterProfiles, metav1.GetOptions{})
		return err == nil && again.GetUID() != live.GetUID()
	}))
	s.awaitKept(t, metav1.ConditionTrue, "ClusterProfiles are kept")
	s.awaitProfiles(t, "again", "a1")
}

// testProfilesAtRest touches clusters, sets and bindings in ways that no
// profile shows.
func (s *scene) testProfilesAtRest(t *testing.T) {
	s.open(t, "rest")
	s.member(t, "r1", map[string]string{clusterv1.LabelClusterSet: "rests"})
	require.NoError(t, s.makeSet(t, "rests", "{}"))
	require.NoError(t, s.bind(t, bindings, "rest", "rests", "{clusterSet: rests}"))
	s.awaitProfiles(t, "rest", "r1")
	// Its status is written after it is created.
	before := rests(t, func() string {
		return s.awaitProfile(t, "rest", "r1", func(*multiclusterv1alpha1.ClusterProfile) bool { return true }).ResourceVersion
	}, time.Second)
	s.relabel(t, "r1", map[string]any{"other": "label"})
	s.patchSet(t, "rests", `{"metadata":{"labels":{"a":"b"}},"spec":{"managedNamespaces":[{"name":"n"}]}}`)
	s.awaitEntries(t, "r1", "rests/n")
	require.NoError(t, s.bind(t, bindings, "rest", "global", "{clusterSet: global}"))
	s.awaitBound(t, "rest", "global", metav1.ConditionTrue, clusterv1beta2.ReasonClusterSetBound, "")
	// A profile of another cluster that appears after all that shows that the loop has
	// seen it.
	s.member(t, "r2", map[string]string{clusterv1.LabelClusterSet: "rests"})
	s.awaitProfile(t, "rest", "r2", func(*multiclusterv1alpha1.ClusterProfile) bool { return true })
	after := s.awaitProfile(t, "rest", "r1", func(*multiclusterv1alpha1.ClusterProfile) bool { return true })
	require.Equal(t, before, after.ResourceVersion)
}

func (s *scene) testGateOff(t *testing.T) {
	s.open(t, "off")
	s.foreign(t, "off", "foreign")
	s.member(t, "o1", map[string]string{clusterv1.LabelClusterSet: "offs"})
	require.NoError(t, s.makeSet(t, "offs", "{}"))
	require.NoError(t, s.bind(t, bindings, "off", "offs", "{clusterSet: offs}"))
	s.awaitProfiles(t, "off", "foreign", "o1")
	s.gate(t, "Disable")
	s.awaitProfiles(t, "off", "foreign")
	s.awaitKept(t, "", "")
	require.True(t, s.hasProfiles(t), "the API stays")
	s.gate(t, "Enable")
	s.awaitProfiles(t, "off", "foreign", "o1")
}

func (s *scene) testHubGoes(t *testing.T) {
	_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), namespace("last"), metav1.CreateOptions{})
	require.NoError(t, err)
	mc := cluster("l1")
	require.NoError(t, create(s.dyn, mc))
	require.NoError(t, s.bind(t, bindings, "last", "default", "{clusterSet: default}"))
	s.awaitProfiles(t, "last", "l1")
	foreign := s.foreign(t, "last", "foreign")
	require.NoError(t, s.dyn.Resource(managers).Delete(context.Background(), hub.Name, metav1.DeleteOptions{}))
	deadline := time.Now().Add(2 * patience)
	for !s.absent(t) {
		require.True(t, time.Now().Before(deadline), "the hub does not go")
		<-time.After(tick)
	}
	s.awaitProfiles(t, "last", "foreign")
	live, err := s.dyn.Resource(profiles).Namespace("last").Get(t.Context(), "foreign", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, foreign.GetUID(), live.GetUID())
}
