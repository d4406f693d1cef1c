// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	library "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var (
	works      = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "manifestworks"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

const configMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: greeting, namespace: default}
data: {text: hello}
`

func TestWorkGoesToTheClustersThatAreMeant(t *testing.T) {
	hub := harness.Shared(t, "hub")
	kubeconfig(t, hub)
	client := asHub(t, hub)
	for _, name := range []string{"w1", "w2"} {
		registers(t, client, name, true)
		_, err := client.Resource(namespaces).Create(t.Context(), object("v1", "Namespace", "", name, nil), metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
	apply := func(stdin string, words ...string) said {
		return runWith(t, stdin, append([]string{"work", "apply", "web", "-f", "-", "--context", "hub"}, words...)...)
	}
	first := apply(configMap, "-c", "w1,w2")
	require.Zero(t, first.code)
	require.Equal(t, "manifestwork/web created on w1\nmanifestwork/web created on w2\n", first.out)
	require.Contains(t, apply(configMap, "-c", "w1").out, "unchanged on w1")
	require.Contains(t, apply(strings.Replace(configMap, "hello", "goodbye", 1), "-c", "w1").out, "configured on w1")
	require.Equal(t, 1, apply(strings.Replace(configMap, "hello", "again", 1), "-c", "w1", "--diff").code)
	require.Zero(t, apply(strings.Replace(configMap, "hello", "goodbye", 1), "-c", "w1", "--diff").code)
	runsOut(t, configMap, "the agent of w1 has not answered", "work", "apply", "web", "-f", "-", "--context", "hub", "-c", "w1", "--wait")
	missing := apply(configMap, "-c", "w1,w9")
	require.Equal(t, 1, missing.code)
	require.Contains(t, missing.err, `there is no managed cluster "w9"`)
	require.Equal(t, 2, apply(configMap).code, "nothing never means all")

	var list struct{ Items []map[string]any }
	listed := run(t, "work", "list", "--context", "hub", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(listed.out), &list))
	require.Len(t, list.Items, 2)
	require.Contains(t, run(t, "work", "list", "-c", "w2", "--context", "hub").out, "w2")
	require.NotContains(t, run(t, "work", "list", "-c", "w2", "--context", "hub").out, "w1")

	require.Equal(t, 6, run(t, "work", "delete", "web", "--all", "--context", "hub").code)
	require.Zero(t, run(t, "work", "delete", "web", "-c", "w1,w2", "--context", "hub", "--yes").code)
	items, err := client.Resource(works).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, items.Items)
	require.Equal(t, 1, run(t, "work", "delete", "web", "-c", "w1", "--context", "hub", "--yes").code)
	require.Contains(t, run(t, "work", "delete", "web", "-c", "w1", "--context", "hub", "--yes", "--ignore-not-found").out, "unchanged on w1")
}

func TestWorkThatCannotBeSentIsRefusedWithoutTheHub(t *testing.T) {
	kubeconfigs.Store(t.Name(), filepath.Join(t.TempDir(), "none"))
	dir := t.TempDir()
	for name, tc := range map[string]struct{ content, want string }{
		"not YAML": {"a: [", "is not YAML"},
		"a scalar": {"hello", "is not a Kubernetes object"},
		"no kind":  {"apiVersion: v1\nmetadata: {name: x}\n", "is not a Kubernetes object"},
		"no name":  {"apiVersion: v1\nkind: Namespace\nmetadata: {}\n", "has no metadata.name"},
		"a generated name": {
			"apiVersion: v1\nkind: Pod\nmetadata: {generateName: x-, namespace: a}\n",
			"generateName",
		},
		"no namespace": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "has no namespace"},
		"twice":        {configMap + "---\n" + configMap, "appears twice"},
		"too large": {
			strings.Replace(configMap, "hello", strings.Repeat("x", 600<<10), 1),
			"a work holds 512000",
		},
		"nothing but comments":       {"# nothing\n---\n", "there are no manifests"},
		"binary":                     {"\x00\x01\x02", "is not YAML"},
		"a list inside of documents": {"- a\n- b\n", "is not a Kubernetes object"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "m.yaml")
			require.NoError(t, os.WriteFile(path, []byte(tc.content), 0o600))
			got := run(t, "work", "apply", "web", "-f", path, "-c", "c1")
			require.Equal(t, 2, got.code)
			require.Contains(t, got.err, tc.want)
			require.Contains(t, got.err, "fix: ")
			require.Empty(t, got.out)
		})
	}
}

func TestClustersAreListedByOneLookAtTheHub(t *testing.T) {
	hub := harness.Shared(t, "hub")
	kubeconfig(t, hub)
	client := asHub(t, hub)
	reports(t, client, registers(t, client, "up", true), "True")
	reports(t, client, registers(t, client, "away", true), "Unknown")
	registers(t, client, "asking", false)
	got := run(t, "cluster", "list", "--context", "hub", "--no-headers")
	require.Zero(t, got.code)
	for name, status := range map[string]string{"up": "Available", "away": "Unknown", "asking": "PendingAccept"} {
		require.Regexp(t, name+` +`+status, got.out)
	}
	pending := run(t, "cluster", "list", "--context", "hub", "--status", "pending", "-o", "name")
	require.Contains(t, pending.out, "managedcluster.cluster.open-cluster-management.io/asking")
	require.NotContains(t, pending.out, "/up")
	require.Equal(t, 1, run(t, "cluster", "list", "nope", "--context", "hub").code)
}

// TestAPlacementBecomesASet makes the hub send a work to the clusters of a placement, and
// undoes that.
func TestAPlacementBecomesASet(t *testing.T) {
	hub := harness.Shared(t, "hub")
	kubeconfig(t, hub)
	client := asHub(t, hub)
	_, err := client.Resource(
		placements,
	).Namespace("default").Create(t.Context(), object("cluster.open-cluster-management.io/v1beta1", "Placement", "default", "everywhere",
		map[string]any{"spec": map[string]any{}}), metav1.CreateOptions{})
	require.NoError(t, err)
	apply := func(words ...string) said {
		return runWith(t, configMap, append([]string{"work", "apply", "fan", "-f", "-", "--context", "hub", "--placement", "default/everywhere"}, words...)...)
	}
	const set = "manifestworkreplicaset.work.open-cluster-management.io/fan "
	for i, words := range [][]string{
		{},
		{"--rollout", "all"},
		{"--rollout", "progressive", "--max-concurrency", "25%"},
		{"--rollout", "progressive", "--max-concurrency", "2"},
		{"--rollout", "per-group"},
		{"--update-strategy", "ssa", "--feedback", "text=.data.text"},
	} {
		got := apply(words...)
		require.Zero(t, got.code, got.err)
		if i == 0 {
			require.Equal(t, set+"created\n", got.out)
		}
		require.Equal(t, set+"unchanged\n", apply(words...).out, words)
	}
	listed := run(t, "work", "list", "--sets", "fan", "-n", "default", "--context", "hub", "-o", "wide")
	require.Zero(t, listed.code, listed.err)
	require.Regexp(t, `(?m)^default +fan +everywhere +- +- +0 `, listed.out)
	runsOut(t, configMap, "timed out after %s", "work", "apply", "fan", "-f", "-", "--context", "hub", "--placement", "default/everywhere", "--wait")
	gone := run(t, "work", "delete", "fan", "--placement", "default/everywhere", "--context", "hub", "--yes")
	require.Zero(t, gone.code, gone.err)
	require.Equal(t, set+"deleted\n", gone.out)
}

// meanwhile makes another writer write just before the client's first change is sent.
type meanwhile struct {
	http.RoundTripper
	once sync.Once
	act  func()
}

func (m *meanwhile) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method == http.MethodPatch {
		m.once.Do(m.act)
	}
	return m.RoundTripper.RoundTrip(q)
}

// Of two users who write a set at the same time, both get what they want, or one gets an
// error: no placement that the other has added or started with is lost.
func TestTwoPeopleWriteASetAtOnce(t *testing.T) {
	hub := harness.Shared(t, "hub")
	kubeconfig(t, hub)
	client := asHub(t, hub)
	sets := schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1alpha1", Resource: "manifestworkreplicasets"}
	for _, name := range []string{"first", "second"} {
		_, err := client.Resource(
			placements,
		).Namespace("default").Create(t.Context(), object("cluster.open-cluster-management.io/v1beta1", "Placement", "default", name,
			map[string]any{"spec": map[string]any{}}), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	manifests, err := manifest.Read([]manifest.Source{{Name: "greeting.yaml", Data: []byte(configMap)}}, "")
	require.NoError(t, err)
	apply := func(name, placement, rollout string, act func()) (library.Change, error) {
		config := rest.CopyConfig(hub.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &meanwhile{RoundTripper: next, act: act} })
		c, err := library.Connect(config, "hub")
		require.NoError(t, err)
		return work.ApplySet(t.Context(), work.Options{Hub: c, Name: name, Manifests: manifests, Rollout: rollout,
			Targets: cluster.Targets{Placement: "default/" + placement}})
	}
	nothing := func() {}
	refs := func(name string) []any {
		live, err := client.Resource(sets).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		list, _, err := unstructured.NestedSlice(live.Object, "spec", "placementRefs")
		require.NoError(t, err)
		return list
	}

	_, err = apply("both", "first", "", nothing)
	require.NoError(t, err)
	change, err := apply("both", "first", "per-group", func() {
		_, err := client.Resource(sets).Namespace("default").Patch(t.Context(), "both", types.JSONPatchType,
			[]byte(`[{"op": "add", "path": "/spec/placementRefs/-", "value": {"name": "second"}}]`), metav1.PatchOptions{})
		require.NoError(t, err)
	})
	require.NoError(t, err)
	require.Equal(t, library.Configured, change.Action)
	var names, rollouts []any
	for _, ref := range refs("both") {
		strategy, _ := ref.(map[string]any)["rolloutStrategy"].(map[string]any)
		names, rollouts = append(names, ref.(map[string]any)["name"]), append(rollouts, strategy["type"])
	}
	require.Equal(t, []any{"first", "second"}, names)
	require.Equal(t, "ProgressivePerGroup", rollouts[0])

	_, err = apply("race", "second", "", func() {
		_, err := apply("race", "first", "", nothing)
		require.NoError(t, err)
	})
	require.ErrorContains(t, err, "is not for placement default/second")
	require.Len(t, refs("race"), 1)
	require.Equal(t, "first", refs("race")[0].(map[string]any)["name"])
}
