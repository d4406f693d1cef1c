// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Merge sets the few fields that u names on an object that others own, and leaves the rest.
// Server-side apply would remove what an earlier run with other flags has set. The object must
// exist.
func Merge(ctx context.Context, r *fleet.Run, c *fleet.Cluster, u *unstructured.Unstructured) (fleet.Change, error) {
	client := c.Client.Resource(fleet.ResourceOf(u)).Namespace(u.GetNamespace())
	live, err := client.Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil {
		return fleet.Change{}, err
	}
	if contains(live.Object, u.Object) {
		return withoutAnswer(r, u, live, fleet.Unchanged), nil
	}
	if r.Given.Reads() && r.Given.DryRun != fleet.DryRunServer {
		return withoutAnswer(r, u, live, fleet.Configured), nil
	}
	body := u.DeepCopy()
	body.SetUID(live.GetUID())
	delete(body.Object, "apiVersion")
	delete(body.Object, "kind")
	raw, err := json.Marshal(body.Object)
	if err != nil {
		return fleet.Change{}, fmt.Errorf("encoding %s: %w", fleet.Describe(u), err)
	}
	o := metav1.PatchOptions{FieldManager: fleet.FieldManager}
	if r.Given.Reads() {
		o.DryRun = []string{metav1.DryRunAll}
	}
	changed, err := client.Patch(ctx, u.GetName(), types.MergePatchType, raw, o)
	if err != nil {
		return fleet.Change{}, err
	}
	if r.Given.Reads() {
		return fleet.Change{Object: Clean(changed), Live: Clean(live), Action: fleet.Configured}, nil
	}
	return fleet.Change{Object: fleet.Reference(changed), Action: fleet.Configured}, nil
}

// withoutAnswer returns a change that needs no answer of the server.
func withoutAnswer(r *fleet.Run, u, live *unstructured.Unstructured, action fleet.Action) fleet.Change {
	if !r.Given.Reads() {
		return fleet.Change{Object: fleet.Reference(live), Action: action}
	}
	after := Clean(live)
	after.Object = Overlay(after.Object, u.Object)
	return fleet.Change{Object: after, Live: Clean(live), Action: action}
}

// Overlay returns base with everything of top over it. Lists are replaced as a whole.
func Overlay(base, top map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, base)
	for k, v := range top {
		b, okB := out[k].(map[string]any)
		if t, okT := v.(map[string]any); okB && okT {
			v = Overlay(b, t)
		}
		out[k] = v
	}
	return out
}
