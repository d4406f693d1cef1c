// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"pgregory.net/rapid"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// laterField is a field that only a later version knows, in spec and in status.
const laterField = "ofALaterVersion"

// laterBody sets that field in one part of an object.
func laterBody(part string) string { return `{"` + part + `":{"` + laterField + `":"kept"}}` }

// ofALaterVersion returns a definition as a later version has it: one field more in spec and in
// status. All tests run on such definitions, as if the definitions had been upgraded first.
func ofALaterVersion(t testing.TB, definition *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	out := definition.DeepCopy()
	versions, _, err := unstructured.NestedSlice(out.Object, "spec", "versions")
	require.NoError(t, err)
	for _, v := range versions {
		for _, part := range []string{"spec", "status"} {
			field := []string{"schema", "openAPIV3Schema", "properties", part, "properties"}
			properties, found, err := unstructured.NestedMap(v.(map[string]any), field...)
			require.NoError(t, err)
			if !found {
				continue
			}
			properties[laterField] = map[string]any{"type": "string"}
			require.NoError(t, unstructured.SetNestedMap(v.(map[string]any), properties, field...))
		}
	}
	require.NoError(t, unstructured.SetNestedSlice(out.Object, versions, "spec", "versions"))
	return out
}

// written returns the works and records of a walk with the clients for them.
func (w *walk) written() (out []writable) {
	for name := range w.works {
		out = append(out, writable{w.hub.Resource(works).Namespace(w.cluster), w.full(name)})
	}
	for _, r := range w.records() {
		out = append(out, writable{w.spoke.Resource(applieds), r.Name})
	}
	return out
}

// writable is an object that hub and agent write.
type writable struct {
	client dynamic.ResourceInterface
	name   string
}

func (o writable) merge(t testing.TB, body string, subresources ...string) {
	t.Helper()
	_, err := o.client.Patch(context.Background(), o.name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
	require.NoError(t, err)
}

// writeAsLater writes what a hub and an agent of a later version would have left behind.
func (w *walk) writeAsLater() {
	for _, o := range w.written() {
		o.merge(w.t, laterBody("spec"))
		o.merge(w.t, laterBody("status"), "status")
	}
}

// keepsLater requires what a later version wrote.
func (w *walk) keepsLater() {
	for _, o := range w.written() {
		u, err := o.client.Get(context.Background(), o.name, metav1.GetOptions{})
		require.NoError(w.t, err)
		for _, part := range []string{"spec", "status"} {
			value, _, _ := unstructured.NestedString(u.Object, part, laterField)
			require.Equal(w.t, "kept", value, "the %s of %s %s lost what a later version had written", part, u.GetKind(), u.GetName())
		}
	}
}

// writeAsEarlier reduces works and records to what an agent of several versions back leaves
// behind: records without annotations, and a status without generations and of no manifest.
func (w *walk) writeAsEarlier() {
	for name := range w.works {
		work := w.work(w.full(name))
		for i := range work.Status.Conditions {
			work.Status.Conditions[i].ObservedGeneration = 0
		}
		body, err := json.Marshal(map[string]any{"status": map[string]any{"resourceStatus": nil, "conditions": work.Status.Conditions}})
		require.NoError(w.t, err)
		writable{w.hub.Resource(works).Namespace(w.cluster), work.Name}.merge(w.t, string(body), "status")
	}
	for _, r := range w.records() {
		writable{w.spoke.Resource(applieds), r.Name}.merge(w.t, `{"metadata":{"annotations":null}}`)
	}
}

// upgrade changes a work while no agent runs, writes as an agent of another version would have,
// and starts an agent that is killed after some of its writes, and then one that is not.
func (w *walk) upgrade(t *rapid.T, written func()) {
	work := w.one(t, true)
	values, orphan := w.values(t, work), w.works[work].orphan
	w.model.declare(work, values, orphan)
	w.stop()
	w.send(work, false)
	written()
	w.sent.DieAfter(rapid.IntRange(1, 4).Draw(t, "killed after"))
	w.stop = w.start()
	w.converge(true)
	w.stop()
	w.sent.Revive()
	w.stop = w.start()
	w.converge(false)
}

// versions are the steps of a walk in which the agent changes its version.
func (w *walk) versions() map[string]func(*rapid.T) {
	all := w.steps()
	return map[string]func(*rapid.T){
		"declare": all["declare"], "delete": all["delete"], "edit an object": all["edit an object"],
		"follow a later version": func(t *rapid.T) {
			w.upgrade(t, w.writeAsLater)
			w.keepsLater()
		},
		"follow an earlier version": func(t *rapid.T) {
			w.upgrade(t, w.writeAsEarlier)
			w.eventually(func() bool {
				return !slices.ContainsFunc(w.records(), func(r *workv1.AppliedManifestWork) bool { return r.Annotations[workv1.AnnotationLastSeen] == "" })
			}, "a record was not taken over")
		},
	}
}

// TestRandomWalksThroughVersionsEndAsDeclared takes random walks in which the agent is also
// replaced by one of another version, and killed on the way: what a later version wrote stays,
// and what an earlier one wrote is taken over without any object being made anew.
func TestRandomWalksThroughVersionsEndAsDeclared(t *testing.T) {
	takeWalks(t, (*walk).versions)
}
