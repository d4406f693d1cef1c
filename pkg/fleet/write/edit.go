// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Edit changes parts of an object that others own, lists included: change makes the change on a
// copy of the live object, and only what differs is sent, for the version that was read. When
// others wrote in between, it reads and decides again. The object must exist.
func Edit(ctx context.Context, r *fleet.Run, c *fleet.Cluster, u *unstructured.Unstructured,
	change func(*unstructured.Unstructured) error) (out fleet.Change, err error) {
	err = Again(func() error {
		out, err = editOnce(ctx, r, c, u, change)
		return err
	})
	return out, Busy(u, err)
}

func editOnce(ctx context.Context, r *fleet.Run, c *fleet.Cluster, u *unstructured.Unstructured,
	change func(*unstructured.Unstructured) error) (fleet.Change, error) {
	client := c.Client.Resource(fleet.ResourceOf(u)).Namespace(u.GetNamespace())
	live, err := client.Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil {
		return fleet.Change{}, err
	}
	after := live.DeepCopy()
	if err := change(after); err != nil {
		return fleet.Change{}, err
	}
	patch := difference(live.Object, after.Object)
	out := fleet.Change{Object: fleet.Reference(live), Action: fleet.Configured}
	if len(patch) == 0 {
		out.Action = fleet.Unchanged
	}
	if r.Given.Reads() {
		out.Object, out.Live = Clean(after), Clean(live)
	}
	if len(patch) == 0 || r.Given.Reads() && r.Given.DryRun != fleet.DryRunServer {
		return out, nil
	}
	body := &unstructured.Unstructured{Object: patch}
	body.SetUID(live.GetUID())
	body.SetResourceVersion(live.GetResourceVersion())
	raw, err := json.Marshal(patch)
	if err != nil {
		return fleet.Change{}, fmt.Errorf("encoding %s: %w", fleet.Describe(u), err)
	}
	o := metav1.PatchOptions{FieldManager: fleet.FieldManager}
	if r.Given.Reads() {
		o.DryRun = []string{metav1.DryRunAll}
	}
	changed, err := client.Patch(ctx, u.GetName(), types.MergePatchType, raw, o)
	if err == nil && r.Given.Reads() {
		out.Object = Clean(changed)
	}
	return out, err
}

// difference returns the merge patch that turns before into after.
func difference(before, after map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range after {
		old, had := before[key]
		oldMap, wasMap := old.(map[string]any)
		newMap, isMap := value.(map[string]any)
		switch {
		case wasMap && isMap:
			if inner := difference(oldMap, newMap); len(inner) > 0 {
				out[key] = inner
			}
		case !had || !equality.Semantic.DeepEqual(old, value):
			out[key] = value
		}
	}
	for key := range before {
		if _, kept := after[key]; !kept {
			out[key] = nil
		}
	}
	return out
}
