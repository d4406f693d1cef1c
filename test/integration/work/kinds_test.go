// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

func (s *scene) value(k kindCase, name string) string {
	s.t.Helper()
	namespace := s.namespace
	if k.cluster {
		namespace = ""
	}
	u := s.getIn(k.gvr, namespace, name)
	if u == nil {
		return "-"
	}
	v, _, err := unstructured.NestedFieldNoCopy(u.Object, k.at...)
	require.NoError(s.t, err)
	raw, err := json.Marshal(v)
	require.NoError(s.t, err)
	return string(raw)
}

// TestEveryKindOfTheTableIsMadeChangedRepairedAndRemoved goes through the kinds that Open
// Cluster Management handles specially: here, all are handled in the same way.
func TestEveryKindOfTheTableIsMadeChangedRepairedAndRemoved(t *testing.T) {
	s := newScene(t)
	apply(t, s.spoke, clusterRoles, "", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",
		"metadata":{"name":"kinds-for-works","labels":{"open-cluster-management.io/aggregate-to-work":"true"}},"rules":[
		{"apiGroups":["monitoring.coreos.com"],"resources":["prometheusrules","alertmanagers","prometheuses"],"verbs":["*"]},
		{"apiGroups":["snapshot.storage.k8s.io"],"resources":["volumesnapshotclasses"],"verbs":["*"]},
		{"apiGroups":["admissionregistration.k8s.io"],"resources":["validatingadmissionpolicies","validatingadmissionpolicybindings"],"verbs":["*"]}]}`)
	for _, d := range foreignDefinitions() {
		install(t, s.spoke, d)
	}
	s.start()
	for title, k := range kindCases {
		t.Run(title, func(t *testing.T) {
			s := s.in(t)
			name := "k-" + s.namespace
			if title == "CustomResourceDefinition" {
				name += ".example.com"
			}
			raw := replace(k.manifest, "CLUSTER", name)
			var u unstructured.Unstructured
			require.NoError(t, u.UnmarshalJSON([]byte(replace(raw, "NS", s.namespace))))
			namespace := u.GetNamespace()
			name = u.GetName()
			id := "kind-" + strings.ToLower(title)
			s.create(id, []string{raw})
			s.ready(id)
			first := s.value(k, name)
			require.NotContains(t, []string{"-", "null"}, first)
			s.update(id, s.manifests(replace(raw, k.from, k.to)))
			s.ready(id)
			second := s.value(k, name)
			require.NotEqual(t, first, second)
			_, err := s.spoke.Resource(k.gvr).Namespace(namespace).Patch(
				context.Background(), name, types.MergePatchType, []byte(k.drift),
				metav1.PatchOptions{FieldManager: "somebody"},
			)
			require.NoError(t, err)
			s.eventually(func() bool { return s.value(k, name) == second }, "drift is not repaired")
			s.remove(id)
			if k.stays {
				return
			}
			if k.kept {
				s.saysDeleting(id) // until it knows, the agent would recreate it
				s.delete(k.gvr, name)
			}
			s.gone(id)
			require.Equal(t, "-", s.value(k, name))
		})
	}
}

func TestRulesOfAnAggregatedClusterRoleAreTheClusters(t *testing.T) {
	s := newScene(t)
	s.start()
	name := "aggregated-" + s.namespace
	s.create("web", []string{`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"` + name + `"},"rules":[],
		"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"none":"none"}}]}}`})
	s.ready("web")
	filled := `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`
	_, err := s.spoke.Resource(clusterRoles).Patch(
		context.Background(), name, types.MergePatchType, []byte(filled),
		metav1.PatchOptions{FieldManager: "clusterrole-aggregation-controller"},
	)
	require.NoError(t, err)
	s.rests()
	for _, entry := range s.getIn(clusterRoles, "", name).GetManagedFields() {
		if entry.Manager == "work-agent" {
			require.NotContains(t, entry.FieldsV1.GetRawString(), "f:rules")
		}
	}
}

func TestACABundleThatSomebodyInjectsStays(t *testing.T) {
	s := newScene(t)
	s.start()
	k := kindCases["ValidatingWebhookConfiguration"]
	bundle := base64.StdEncoding.EncodeToString(harness.Shared(t, "spoke").Config.CAData)
	require.NotEmpty(t, bundle)
	name := "k-" + s.namespace + ".example.com"
	s.create("web", []string{replace(k.manifest, "CLUSTER", name)})
	s.ready("web")
	_, err := s.spoke.Resource(k.gvr).Patch(context.Background(), name, types.JSONPatchType,
		[]byte(`[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"`+bundle+`"},{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":3}]`),
		metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(t, err)
	s.update("web", s.manifests(replace(replace(k.manifest, "CLUSTER", name), `"a":"1"`, `"a":"2"`)))
	s.ready("web")
	hooks, _, _ := unstructured.NestedSlice(s.getIn(k.gvr, "", name).Object, "webhooks")
	injected, _, _ := unstructured.NestedString(hooks[0].(map[string]any), "clientConfig", "caBundle")
	require.Equal(t, bundle, injected)
}

// saysDeleting waits until a work reports that it is being deleted, but that an object
// cannot be removed: by default, the agent may not delete webhook configurations.
func (s *scene) saysDeleting(name string) {
	s.t.Helper()
	s.eventually(func() bool {
		c := apimeta.FindStatusCondition(s.work(name).Status.Conditions, "Deleting")
		return c != nil && strings.HasPrefix(c.Message, "ManifestWork is being deleted, but removing ")
	}, "work %s does not say what holds it", name)
}

// delete removes a cluster-scoped object as an administrator.
func (s *scene) delete(gvr schema.GroupVersionResource, name string) {
	s.t.Helper()
	require.NoError(s.t, s.spoke.Resource(gvr).Delete(context.Background(), name, metav1.DeleteOptions{}))
}

// The agent's default rights do not let it delete webhook configurations.
func TestWhatCannotBeRemovedIsSaid(t *testing.T) {
	s := newScene(t)
	s.start()
	k := kindCases["ValidatingWebhookConfiguration"]
	name := "k-" + s.namespace
	hook := replace(k.manifest, "CLUSTER", name)
	said := `is forbidden: User "system:serviceaccount:open-cluster-management-agent:`
	const fix = `grant the agent the right, for example by a ClusterRole with the label open-cluster-management.io/aggregate-to-work`
	t.Run("when it leaves the work", func(t *testing.T) {
		s := s.in(t)
		s.create("pruned", []string{hook, configMap("one", "a", "1")})
		s.ready("pruned")
		s.update("pruned", s.manifests(configMap("one", "a", "1")))
		work := s.ready("pruned")
		message := func() string {
			return apimeta.FindStatusCondition(s.work("pruned").Status.Conditions, "Applied").Message
		}
		s.eventually(func() bool { return strings.Contains(message(), said) }, "it is not reported")
		require.Contains(
			t, message(),
			"Apply manifest work complete; objects that the work no longer declares could not be removed: removing validatingwebhookconfigurations",
		)
		require.Contains(t, message(), fix)
		require.Len(t, s.applied("pruned").Status.AppliedResources, 2, "what could not be removed stays recorded")
		version := s.work("pruned").ResourceVersion
		s.eventually(func() bool { return len(s.events("PruneFailed")) > 0 }, "there is no Event of it")
		s.never(func() bool { return s.work("pruned").ResourceVersion != version }, 3*second, "it is said again and again")
		failures := s.events("PruneFailed")
		require.Len(t, failures, 1)
		require.Contains(t, failures[0].Object["note"], said)
		s.delete(k.gvr, name)
		s.eventually(func() bool { return message() == "Apply manifest work complete" }, "it is said when it is over")
		s.eventually(func() bool { return len(s.applied("pruned").Status.AppliedResources) == 1 }, "it is recorded when it is gone")
		require.Equal(t, apimeta.FindStatusCondition(work.Status.Conditions, "Applied").LastTransitionTime,
			apimeta.FindStatusCondition(s.work("pruned").Status.Conditions, "Applied").LastTransitionTime)
	})
	t.Run("when the work is deleted", func(t *testing.T) {
		s := s.in(t)
		s.create("deleted", []string{hook})
		s.ready("deleted")
		s.remove("deleted")
		s.eventually(func() bool {
			c := apimeta.FindStatusCondition(s.work("deleted").Status.Conditions, "Deleting")
			return c != nil && strings.HasPrefix(
				c.Message, "ManifestWork is being deleted, but removing validatingwebhookconfigurations",
			) && strings.Contains(c.Message, fix)
		}, "it is not reported")
		s.delete(k.gvr, name)
		s.gone("deleted")
	})
}

func TestAWorkThatDeclaresNothingAnyMoreKeepsItsObjects(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("web")
	s.update("web", s.manifests())
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	require.Equal(t, "Failed to apply manifest work: it declares no manifests any more, "+
		"so that its 2 objects are kept; delete the work to remove them, or declare them again",
		apimeta.FindStatusCondition(work.Status.Conditions, "Applied").Message)
	s.rests()
	require.Equal(t, "1", s.data("one", "a"))
	require.Len(t, s.applied("web").Status.AppliedResources, 2)
	s.update("web", s.manifests(configMap("two", "a", "2")))
	s.ready("web")
	s.eventually(func() bool { return s.data("one", "a") == "-" && s.data("two", "a") == "2" }, "the next edit is not carried out")
	s.update("web", s.manifests())
	s.settled("web", "Applied", metav1.ConditionFalse)
	s.remove("web")
	s.gone("web")
	require.Equal(t, "-", s.data("two", "a"))
}

func TestASecretOfAnotherTypeIsMadeAnew(t *testing.T) {
	s := newScene(t)
	s.start()
	typed := func(kind, value string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one","namespace":"NS"},"type":%q,"immutable":true,"data":{"a":%q}}`, kind, value)
	}
	s.create("web", []string{typed("Opaque", "MQ==")})
	s.ready("web")
	first := s.get(secrets, "one").GetUID()
	s.update("web", s.manifests(typed("example.com/other", "MQ==")))
	work := s.ready("web")
	second := s.get(secrets, "one")
	require.NotEqual(t, first, second.GetUID())
	require.Equal(t, "example.com/other", second.Object["type"])
	require.Contains(t, condition(work, 0, "Applied").Message, "so the object was deleted and created again")
	s.update("web", s.manifests(typed("example.com/other", "Mg==")))
	s.ready("web")
	value, _, _ := unstructured.NestedString(s.get(secrets, "one").Object, "data", "a")
	require.Equal(t, "Mg==", value, "an immutable Secret is recreated too")
	s.eventually(func() bool {
		return s.applied("web").Status.AppliedResources[0].UID == s.get(secrets, "one").GetUID()
	}, "the new identity is not recorded")

	s.create("shared", []string{typed("example.com/other", "Mg==")}, strategySecrets(workv1.UpdateStrategyTypeCreateOnly))
	s.ready("shared")
	kept := s.get(secrets, "one").GetUID()
	s.update("web", s.manifests(typed("example.com/third", "Mg==")))
	work = s.settled("web", "Applied", metav1.ConditionFalse)
	require.Contains(t, condition(work, 0, "Applied").Message, "such a field cannot be changed on an object that exists: delete the object")
	require.Equal(t, kept, s.get(secrets, "one").GetUID(), "what another work shares is not deleted")

	apply(t, s.spoke, secrets, s.namespace, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"theirs"},"type":"Opaque","data":{"a":"MQ=="}}`)
	theirs := s.get(secrets, "theirs").GetUID()
	s.create("adopts", []string{replace(typed("example.com/other", "MQ=="), `"one"`, `"theirs"`)})
	s.settled("adopts", "Applied", metav1.ConditionFalse)
	require.Equal(t, theirs, s.get(secrets, "theirs").GetUID(), "what was there before is not deleted")
}

func strategySecrets(kind workv1.UpdateStrategyType) change {
	return func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "secrets", Namespace: "*", Name: "*"},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: kind},
		}}
	}
}

func TestStorageKindsOfOtherParametersAreMadeAnew(t *testing.T) {
	s := newScene(t)
	s.aggregate("storage-for-works", `[{"apiGroups":["storage.k8s.io"],"resources":["storageclasses","csidrivers"],"verbs":["*"]}]`)
	s.start()
	name := "k-" + s.namespace + ".example.com"
	class := `{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass",
		"metadata":{"name":"` + name + `"},"provisioner":"example.com/p","parameters":{"p":"1"},"reclaimPolicy":"Delete"}`
	driver := `{"apiVersion":"storage.k8s.io/v1","kind":"CSIDriver","metadata":{"name":"` + name + `"},"spec":{"attachRequired":true}}`
	classes, drivers := resource("storage.k8s.io", "v1", "storageclasses"), resource("storage.k8s.io", "v1", "csidrivers")
	s.create("web", []string{class, driver})
	s.ready("web")
	one, two := s.getIn(classes, "", name).GetUID(), s.getIn(drivers, "", name).GetUID()
	s.update("web", s.manifests(replace(replace(class, `"p":"1"`, `"p":"2"`), `"Delete"`, `"Retain"`), replace(driver, "true", "false")))
	s.ready("web")
	require.NotEqual(t, one, s.getIn(classes, "", name).GetUID())
	require.NotEqual(t, two, s.getIn(drivers, "", name).GetUID())
	s.remove("web")
	s.gone("web")
}

// In Open Cluster Management's library, a key that ends in "-" removes the key without
// the dash. No hub accepts such a key, so it has no special meaning here.
func TestAKeyThatEndsInADashNeverReachesTheAgent(t *testing.T) {
	s := newScene(t)
	for _, field := range []string{"labels", "annotations"} {
		raw := fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork",
			"metadata":{"name":"web","namespace":%q},"spec":{"workload":{"manifests":[
			{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"default",%q:{"old-":"1"}}}]}}}`, s.cluster, field)
		var u unstructured.Unstructured
		require.NoError(t, u.UnmarshalJSON([]byte(raw)))
		_, err := s.hub.Resource(works).Namespace(s.cluster).Create(context.Background(), &u, metav1.CreateOptions{})
		require.ErrorContains(t, err, "spec.workload.manifests[0].metadata."+field)
	}
}

func TestUpdateLeavesWhatOthersAddedToACustomObject(t *testing.T) {
	s := newScene(t)
	s.start()
	grantWidgets(s)
	kind, definition := widgetDefinition(s)
	apply(t, s.spoke, definitions, "", definition)
	gvr := definitionsOf(kind)
	s.eventually(func() bool {
		_, err := s.spoke.Resource(gvr).Namespace(s.namespace).List(context.Background(), metav1.ListOptions{})
		return err == nil
	}, "the kind is not served")
	apply(
		t, s.spoke, gvr, s.namespace,
		fmt.Sprintf(
			`{"apiVersion":"example.com/v1","kind":%q,"metadata":{"name":"w","annotations":{"theirs":"1"},"finalizers":["example.com/theirs"]},"spec":{"size":1}}`,
			kind,
		),
	)
	s.create("web", []string{
		fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":%q,"metadata":{"name":"w","namespace":"NS","annotations":{"ours":"1"}},"spec":{"size":2}}`, kind),
	})
	s.ready("web")
	w := s.get(gvr, "w")
	require.Equal(t, map[string]string{"theirs": "1", "ours": "1"}, w.GetAnnotations())
	require.Equal(t, []string{"example.com/theirs"}, w.GetFinalizers())
	require.Equal(t, "map[size:2]", fmt.Sprint(w.Object["spec"]))
	s.patch(gvr, "w", `{"metadata":{"finalizers":null}}`)
	s.remove("web")
	s.gone("web")
}
