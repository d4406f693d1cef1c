// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var (
	policies       = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	policyBindings = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
	quotas         = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
)

func TestWhatAPolicyRefusesIsSaidAndAppliedWhenItMay(t *testing.T) {
	s := newScene(t)
	apply(t, s.spoke, policies, "", fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":%q},"spec":{
		"failurePolicy":"Fail","matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],
		"operations":["CREATE","UPDATE"],"resources":["configmaps"]}],
			"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%q}}},
		"validations":[{"expression":"!object.metadata.name.startsWith('bad')","message":"names that begin with bad are not wanted here"}]}}`, s.namespace,
		s.namespace))
	apply(t, s.spoke, policyBindings, "", fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1",
		"kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":%q},
		"spec":{"policyName":%q,"validationActions":["Deny"]}}`, s.namespace, s.namespace))
	lift := func() {
		require.NoError(t, s.spoke.Resource(policyBindings).Delete(context.Background(), s.namespace, metav1.DeleteOptions{}))
		require.NoError(t, s.spoke.Resource(policies).Delete(context.Background(), s.namespace, metav1.DeleteOptions{}))
	}
	try := func() bool { // policies take effect some time after their creation
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "bad-try"}}}
		_, err := s.spoke.Resource(configMaps).Namespace(s.namespace).Create(context.Background(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	}
	s.eventually(try, "the policy does not work")
	s.start()
	s.create("web", []string{configMap("bad", "a", "1"), configMap("good", "a", "1")})
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	require.Equal(t, "AppliedManifestFailed", condition(work, 0, "Applied").Reason)
	require.Contains(t, condition(work, 0, "Applied").Message, "names that begin with bad are not wanted here")
	require.Equal(t, metav1.ConditionTrue, condition(work, 1, "Applied").Status)
	require.Equal(t, "1", s.data("good", "a"))
	lift()
	s.ready("web")
	require.Equal(t, "1", s.data("bad", "a"))
}

func TestWhatAQuotaRefusesIsSaidAndAppliedWhenThereIsRoom(t *testing.T) {
	s := newScene(t)
	// There are no other network policies; the cluster's own controller writes the status
	// of the quota.
	const counted = "count/networkpolicies.networking.k8s.io"
	room := func(most string) {
		t.Helper()
		apply(
			t, s.spoke, quotas, s.namespace,
			fmt.Sprintf(`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"few"},"spec":{"hard":{%q:%q}}}`, counted, most),
		)
		s.eventually(func() bool {
			hard, _, _ := unstructured.NestedString(s.get(quotas, "few").Object, "status", "hard", counted)
			return hard == most
		}, "the quota does not become %s", most)
	}
	room("1")
	policy := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":%q,"namespace":"NS"},"spec":{"podSelector":{}}}`, name)
	}
	try := func() bool { // admission rejects the kind until it knows the quota's status
		u := &unstructured.Unstructured{}
		require.NoError(t, u.UnmarshalJSON([]byte(replace(policy("try"), "NS", s.namespace))))
		_, err := s.spoke.Resource(resource("networking.k8s.io", "v1", "networkpolicies")).Namespace(s.namespace).
			Create(context.Background(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil
	}
	s.eventually(try, "the quota does not work")
	s.start()
	s.create("web", []string{policy("first"), policy("second"), configMap("good", "a", "1")})
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	require.Equal(t, metav1.ConditionTrue, condition(work, 0, "Applied").Status)
	require.Contains(t, condition(work, 1, "Applied").Message, "exceeded quota: few")
	require.Equal(t, "1", s.data("good", "a"))
	room("5")
	s.ready("web")
}

func TestAnImmutableFieldIsNamed(t *testing.T) {
	s := newScene(t)
	s.start()
	fixed := func(value string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"fixed","namespace":"NS"},"immutable":true,"data":{"a":%q}}`, value)
	}
	s.create("web", []string{fixed("1"), configMap("free", "a", "1")})
	s.ready("web")
	uid := s.get(configMaps, "fixed").GetUID()
	s.update("web", s.manifests(fixed("2"), configMap("free", "a", "2")))
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	s.settled("web", "Available", metav1.ConditionTrue)
	require.Contains(t, condition(work, 0, "Applied").Message, "data: Forbidden: field is immutable when `immutable` is set")
	s.eventually(func() bool { return s.data("free", "a") == "2" }, "the other object is not changed")
	require.Equal(t, "1", s.data("fixed", "a"))
	require.Equal(t, uid, s.get(configMaps, "fixed").GetUID(), "nothing is deleted to change it")
	s.update("web", s.manifests(fixed("1"), configMap("free", "a", "2")))
	s.ready("web")
}

func TestTheLongestNameOfAWork(t *testing.T) {
	s := newScene(t)
	s.start()
	longest, tooLong := strings.Repeat("w", 188), strings.Repeat("w", 189)
	s.create(longest, []string{configMap("one", "a", "1")})
	s.ready(longest)
	require.Len(t, s.applied(longest).Name, 253)
	s.create(tooLong, []string{configMap("two", "a", "1")})
	s.create("web", []string{configMap("three", "a", "1")})
	s.ready("web")
	work := s.settled(tooLong, "Applied", metav1.ConditionFalse)
	require.Contains(t, condition(work, 0, "Applied").Message, "metadata.name: has 189 characters, more than the 188")
	require.Equal(t, "-", s.data("two", "a"), "nothing is applied that could not be recorded")
	for _, name := range []string{longest, tooLong} {
		s.remove(name)
		s.gone(name)
	}
	require.Equal(t, "-", s.data("one", "a"))
}

// A resource identifier of one work does not match objects of another: names and
// namespaces are compared as a whole, even when one contains the other.
func TestNamesThatAreAlikeAreApart(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.create("web-1", []string{configMap("one-1", "a", "1")})
	s.ready("web")
	s.ready("web-1")
	s.update("web", s.manifests(configMap("two", "a", "1")), func(w *workv1.ManifestWork) { w.Labels = map[string]string{"a": "b"} })
	s.ready("web")
	s.eventually(func() bool { return s.data("one", "a") == "-" }, "it is not pruned")
	require.Equal(t, "1", s.data("one-1", "a"))
	s.remove("web")
	s.gone("web")
	require.Equal(t, "1", s.data("one-1", "a"))
}
