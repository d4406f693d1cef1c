// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// sessions returns how many sessions the agent has had on a hub.
func (a *agent) sessions(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile(a.log)
	require.NoError(t, err)
	return bytes.Count(raw, []byte("The hub accepted the cluster"))
}

// amend patches the spec of the Klusterlet and waits until the agent has seen that; it
// returns the reason of condition Applied.
func (s *spoke) amend(t *testing.T, spec string) (reason string) {
	t.Helper()
	api := s.client.Resource(klusterlets)
	patched, err := api.Patch(t.Context(), "klusterlet", types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{})
	require.NoError(t, err)
	await(t, func() bool {
		u, err := api.Get(t.Context(), "klusterlet", metav1.GetOptions{})
		require.NoError(t, err)
		observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, item := range conditions {
			if c, ok := item.(map[string]any); ok && c["type"] == "Applied" {
				reason, _ = c["reason"].(string)
			}
		}
		return observed >= patched.GetGeneration()
	})
	return reason
}

func TestOnlySettingsThatConcernItEndASession(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s, a := joined(t, h, "amended")
	await(t, func() bool { return a.sessions(t) == 1 })
	// The definition accepts a duration that cannot be parsed; that stops nothing.
	require.Equal(t, "KlusterletApplyFailed", s.amend(t, `{"workConfiguration":{"appliedManifestWorkEvictionGracePeriod":"99999999999999999999h"}}`))
	require.Equal(t, "KlusterletApplied", s.amend(t, `{"workConfiguration":null}`))
	// Labels and addresses apply only when a cluster joins.
	require.Equal(t, "KlusterletApplied", s.amend(t, `{"registrationConfiguration":{"clusterLabels":{"a":"b"}},"externalServerURLs":[{"url":"https://here"}]}`))
	require.Equal(t, "KlusterletApplied", s.amend(t, `{"registrationConfiguration":{"clusterClaimConfiguration":{"maxCustomClusterClaims":7}}}`))
	await(t, func() bool { return a.sessions(t) > 1 }, "the limit of claims is one of the session")
	require.Equal(t, 2, a.sessions(t))
	// Its name is that of its certificate, whatever the spec says.
	require.Equal(t, "KlusterletApplied", s.amend(t, `{"clusterName":"other"}`))
	require.Equal(t, 2, a.sessions(t))
	_, err := h.client.Resource(clusters).Get(t.Context(), "other", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "it asks for no other name: %v", err)
	s.testOwnPolicies(t, h)
	s.testPullSecret(t)
	s.testProfile(t, a)
	require.Equal(t, 2, a.sessions(t), "what its pod may reach or accept, and what add-ons need, is none of the session")
	s.testRest(t)
	require.True(t, a.running())
}

// testOwnPolicies: an agent that serves itself applies the policies of its gate, puts them back and
// removes them; they know where its hub is.
func (s *spoke) testOwnPolicies(t *testing.T, h *hub) {
	t.Helper()
	api := s.client.Resource(policies).Namespace(operatorv1.NamespaceAgent)
	all := func() map[string]*unstructured.Unstructured {
		list, err := api.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		out := map[string]*unstructured.Unstructured{}
		for i := range list.Items {
			out[list.Items[i].GetName()] = &list.Items[i]
		}
		return out
	}
	require.Equal(t, "KlusterletApplied", s.amend(t, `{"registrationConfiguration":{"featureGates":[{"feature":"NetworkPolicies","mode":"Enable"}]}}`))
	await(t, func() bool { return len(all()) == 3 })
	first := all()
	at, err := url.Parse(h.Config.Host)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(first["allow-dns-and-api"].Object["spec"]), "port:"+at.Port()+" ")
	_, err = api.Patch(t.Context(), "default-deny-all", types.MergePatchType, []byte(`{"spec":{"ingress":[{}]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, api.Delete(t.Context(), "klusterlet-agent", metav1.DeleteOptions{}))
	await(t, func() bool {
		now := all()
		back := now["klusterlet-agent"]
		return back != nil && back.GetUID() != first["klusterlet-agent"].GetUID() &&
			reflect.DeepEqual(now["default-deny-all"].Object["spec"], first["default-deny-all"].Object["spec"])
	}, "policies are not put back")
	k, err := typed.Get[operatorv1.Klusterlet](t.Context(), s.client, klusterlets, "", "klusterlet")
	require.NoError(t, err)
	require.Contains(t, k.Status.RelatedResources, operatorv1.RelatedResourceMeta{
		Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies", Namespace: operatorv1.NamespaceAgent, Name: "default-deny-all",
	})
	require.Equal(t, "KlusterletApplied", s.amend(t, `{"registrationConfiguration":{"featureGates":null}}`))
	await(t, func() bool { return len(all()) == 0 }, "policies are left")
}

// testPullSecret: the credentials for images beside the agent are where add-ons run, follow their source
// and go with it; those of others stay.
func (s *spoke) testPullSecret(t *testing.T) {
	t.Helper()
	const name = operatorv1.SecretImagePull
	put := func(namespace, text string) {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson", "stringData": map[string]any{".dockerconfigjson": text},
		}}
		u.SetName(name)
		_, err := s.client.Resource(secrets).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for _, place := range []string{"asks", "has"} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		u.SetName(place)
		u.SetLabels(map[string]string{operatorv1.LabelAddOnNamespace: "true"})
		_, err := s.client.Resource(namespaces).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
		if place == "has" {
			put(place, `{"auths":{"theirs":{}}}`)
		}
	}
	holds := func(namespace, text string) bool {
		u, err := s.client.Resource(secrets).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return text == ""
		}
		require.NoError(t, err)
		data, _, _ := unstructured.NestedString(u.Object, "data", ".dockerconfigjson")
		return u.Object["type"] == "kubernetes.io/dockerconfigjson" && data == base64.StdEncoding.EncodeToString([]byte(text))
	}
	everywhere := func(text string) {
		t.Helper()
		await(t, func() bool { return holds("asks", text) && holds(operatorv1.NamespaceAgentAddOn, text) }, "copies of %q", text)
		require.True(t, holds("has", `{"auths":{"theirs":{}}}`), "what others made is theirs")
	}
	put(operatorv1.NamespaceAgent, `{"auths":{"first":{}}}`)
	everywhere(`{"auths":{"first":{}}}`)
	_, err := s.client.Resource(secrets).Namespace(operatorv1.NamespaceAgent).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"stringData":{".dockerconfigjson":"{\"auths\":{\"second\":{}}}"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	everywhere(`{"auths":{"second":{}}}`)
	copied, err := s.client.Resource(secrets).Namespace("asks").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "klusterlet", copied.GetOwnerReferences()[0].Name, "it goes with the Klusterlet")
	require.NoError(t, s.client.Resource(secrets).Namespace(operatorv1.NamespaceAgent).Delete(t.Context(), name, metav1.DeleteOptions{}))
	everywhere("")
}

// testProfile: the ConfigMap beside the agent limits the connections that it accepts, without another
// session or process, and is copied to where add-ons run. It runs after testPullSecret, with its namespaces.
func (s *spoke) testProfile(t *testing.T, a *agent) {
	t.Helper()
	api := func(namespace string) dynamic.ResourceInterface {
		return s.client.Resource(configMaps).Namespace(namespace)
	}
	put := func(namespace string, data map[string]any) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
		u.SetName("ocm-tls-profile")
		_, err := api(namespace).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	holds := func(namespace string, data map[string]string) bool {
		u, err := api(namespace).Get(t.Context(), "ocm-tls-profile", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return data == nil
		}
		require.NoError(t, err)
		have, _, _ := unstructured.NestedStringMap(u.Object, "data")
		return maps.Equal(have, data)
	}
	accepts := func(version uint16) bool {
		d := &tls.Dialer{Config: &tls.Config{MaxVersion: version, InsecureSkipVerify: true}} //nolint:gosec // what is accepted is tested
		conn, err := d.DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", a.port))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}
	require.True(t, accepts(tls.VersionTLS12))
	theirs := map[string]string{"minTLSVersion": "theirs"}
	put("has", map[string]any{"minTLSVersion": "theirs"})
	put(operatorv1.NamespaceAgent, map[string]any{"minTLSVersion": "TLSv1.3"})
	limited := map[string]string{"minTLSVersion": "TLSv1.3"}
	await(t, func() bool {
		return !accepts(tls.VersionTLS12) && accepts(tls.VersionTLS13) && holds("asks", limited) && holds(operatorv1.NamespaceAgentAddOn, limited)
	}, "the limits are not in effect, or not copied")
	require.True(t, holds("has", theirs), "what others made is theirs")

	message := func() string {
		k, err := typed.Get[operatorv1.Klusterlet](t.Context(), s.client, klusterlets, "", "klusterlet")
		require.NoError(t, err)
		return apimeta.FindStatusCondition(k.Status.Conditions, operatorv1.ConditionApplied).Message
	}
	_, err := api(operatorv1.NamespaceAgent).Patch(t.Context(), "ocm-tls-profile", types.MergePatchType, []byte(`{"data":{"minTLSVersion":"TLSv9"}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
	await(t, func() bool {
		return strings.Contains(message(), "open-cluster-management-agent/ocm-tls-profile is not in effect: ")
	}, "nobody says so")
	require.False(t, accepts(tls.VersionTLS12), "what cannot be read changes nothing")
	require.NoError(t, api(operatorv1.NamespaceAgent).Delete(t.Context(), "ocm-tls-profile", metav1.DeleteOptions{}))
	await(t, func() bool {
		return accepts(tls.VersionTLS12) && holds("asks", nil) && holds(operatorv1.NamespaceAgentAddOn, nil)
	}, "the limits are left")
	await(t, func() bool { return !strings.Contains(message(), "ocm-tls-profile") }, "the condition is left")
	require.True(t, holds("has", theirs))
}

// testRest checks what else an agent maintains and reports beside its own work.
func (s *spoke) testRest(t *testing.T) {
	k, err := typed.Get[operatorv1.Klusterlet](t.Context(), s.client, klusterlets, "", "klusterlet")
	require.NoError(t, err)
	c := apimeta.FindStatusCondition(k.Status.Conditions, "SpecSupported")
	require.Contains(t, c.Message, "joined as amended")
	require.NotEmpty(t, k.Status.RelatedResources)

	second := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet", "metadata": map[string]any{"name": "second"}},
	}
	_, err = s.client.Resource(klusterlets).Create(t.Context(), second, metav1.CreateOptions{})
	require.NoError(t, err)
	await(t, func() bool {
		k, err := typed.Get[operatorv1.Klusterlet](t.Context(), s.client, klusterlets, "", "second")
		return err == nil && apimeta.IsStatusConditionFalse(k.Status.Conditions, operatorv1.ConditionApplied)
	}, "a Klusterlet may have the namespace of another")
	require.NoError(t, s.client.Resource(klusterlets).Delete(t.Context(), "second", metav1.DeleteOptions{}))

	before, err := s.client.Resource(namespaces).Get(t.Context(), operatorv1.NamespaceAgentAddOn, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, s.client.Resource(namespaces).Delete(t.Context(), operatorv1.NamespaceAgentAddOn, metav1.DeleteOptions{}))
	await(t, func() bool {
		now, err := s.client.Resource(namespaces).Get(t.Context(), operatorv1.NamespaceAgentAddOn, metav1.GetOptions{})
		return err == nil && now.GetUID() != before.GetUID() && now.GetDeletionTimestamp() == nil
	}, "the namespace of add-ons is not put back")
}

func TestAGateOfTheKlusterletReachesTheWorks(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s, a := joined(t, h, "structures")
	apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
		"metadata": map[string]any{"namespace": "structures", "name": "told"},
		"spec": map[string]any{
			"workload": map[string]any{
				"manifests": []any{map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
						"namespace": "default",
						"name":      "told",
					}, "data": map[string]any{
						"k": "v",
					}}},
			},
			"manifestConfigs": []any{
				map[string]any{
					"resourceIdentifier": map[string]any{"resource": "configmaps", "namespace": "default", "name": "told"},
					"feedbackRules": []any{
						map[string]any{"type": "JSONPaths", "jsonPaths": []any{map[string]any{"name": "all", "path": ".data"}}},
					},
				},
			},
		}}})
	told := func(want string) {
		t.Helper()
		await(t, func() bool {
			u, err := h.client.Resource(works).Namespace("structures").Get(t.Context(), "told", metav1.GetOptions{})
			require.NoError(t, err)
			raw, err := u.MarshalJSON()
			require.NoError(t, err)
			return bytes.Contains(raw, []byte(want))
		}, want)
	}
	told("enable the feature gate RawFeedbackJsonString")
	require.Equal(t, "KlusterletApplied", s.amend(t, `{"workConfiguration":{"featureGates":[{"feature":"RawFeedbackJsonString","mode":"Enable"}]}}`))
	told(`"jsonRaw":"{\"k\":\"v\"}"`)
	require.True(t, a.running())
}
