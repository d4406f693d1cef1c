// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// cluster has objects of these JSON forms.
func cluster(t *testing.T, texts ...string) *fake.FakeDynamicClient {
	t.Helper()
	var objects []runtime.Object
	for _, text := range texts {
		u := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal([]byte(text), u))
		objects = append(objects, u)
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{pods: "PodList", deployments: "DeploymentList"}, objects...)
}

// pod is one of app web in a namespace, with a status.
func pod(name, namespace, status string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"labels":{"app":"web"}},"status":%s}`, name, namespace, status)
}

func TestPodsTellOfTheHealthOfAnAgent(t *testing.T) {
	const (
		ready   = `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`
		unready = `{"phase":"Running","conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":"False"}]}`
		waits   = `{"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"terminated":{}}}],` +
			`"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}`
	)
	leaving := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n","labels":{"app":"web"},` +
		`"deletionTimestamp":"2030-01-01T00:00:00Z","finalizers":["x"]},"status":` + ready + `}`
	for name, tc := range map[string]struct {
		objects []string
		want    string
	}{
		"one is ready":         {[]string{pod("a", "n", waits), pod("b", "n", ready)}, ""},
		"one has succeeded":    {[]string{pod("a", "n", `{"phase":"Succeeded"}`)}, ""},
		"there is none":        {nil, "there is no pod of app=web in namespace n"},
		"it is in another one": {[]string{pod("a", "m", ready)}, "there is no pod of app=web in namespace n"},
		"none is ready":        {[]string{pod("a", "n", unready)}, "no pod of app=web in namespace n is ready: a is Running"},
		"it leaves":            {[]string{leaving}, "no pod of app=web in namespace n is ready: a is Running"},
		"an image is missing": {
			[]string{pod("a", "n", waits)},
			"no pod of app=web in namespace n is ready: a is Pending, container c waits: ImagePullBackOff",
		},
	} {
		t.Run(name, func(t *testing.T) {
			check, err := Pods(cluster(t, tc.objects...), "n", "app=web")
			require.NoError(t, err)
			if err = check(t.Context()); tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tc.want)
		})
	}
}

func TestPodsAreReadInPages(t *testing.T) {
	client := cluster(t)
	var asked []string
	client.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		o := a.(clienttesting.ListActionImpl).ListOptions
		require.EqualValues(t, podPage, o.Limit)
		asked = append(asked, o.Continue)
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "PodList"}}
		status := map[string]any{"phase": "Failed"}
		if o.Continue == "" {
			list.SetContinue("more")
		}
		list.Items = []unstructured.Unstructured{
			{Object: map[string]any{"metadata": map[string]any{"name": "p" + o.Continue, "labels": map[string]any{"app": "web"}}, "status": status}},
		}
		return true, list, nil
	})
	check, err := Pods(client, "n", "app")
	require.NoError(t, err)
	require.EqualError(t, check(t.Context()), "no pod of app in namespace n is ready: p is Failed")
	require.Equal(t, []string{"", "more"}, asked)
}

func TestPodsThatCannotBeAskedFor(t *testing.T) {
	_, err := Pods(nil, "n", "")
	require.EqualError(t, err, "label selector of the pods in namespace n: must be set; any other pod would count")
	_, err = Pods(nil, "n", "a in (")
	require.ErrorContains(t, err, `label selector "a in ("`)
	client := cluster(t)
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	check, err := Pods(client, "n", "app=web")
	require.NoError(t, err)
	require.EqualError(t, check(t.Context()), "listing the pods of app=web in namespace n: forbidden")
}

func TestADeploymentTellsOfTheHealthOfAnAgent(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"a replica is ready": {`"spec":{"replicas":3},"status":{"readyReplicas":1}`, ""},
		"none is wanted":     {`"spec":{"replicas":0}`, ""},
		"none is ready":      {`"spec":{"replicas":3},"status":{}`, "Deployment n/web has no ready replica of 3"},
		"one by default":     {`"spec":{}`, "Deployment n/web has no ready replica of 1"},
		"there is none":      {"", `reading Deployment n/web: deployments.apps "web" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			client := cluster(t)
			if tc.content != "" {
				client = cluster(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"n"},`+tc.content+`}`)
			}
			if err := Deployment(client, "n", "web")(t.Context()); tc.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tc.want)
			}
		})
	}
}
