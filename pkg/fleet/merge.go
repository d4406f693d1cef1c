// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// merge sets the few fields that u names on an object that is somebody else's,
// and leaves the others. Server-side apply would take away what an earlier run
// with other flags has set. The object must be there.
func (r *run) merge(ctx context.Context, c *Cluster, u *unstructured.Unstructured) (Change, error) {
	live, err := c.Client.Resource(resourceOf(u)).Namespace(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil {
		return Change{}, err
	}
	if contains(live.Object, u.Object) {
		return r.shown(u, live, Unchanged), nil
	}
	if r.common.reads() && r.common.DryRun != DryRunServer {
		return r.shown(u, live, Configured), nil
	}
	body := u.DeepCopy()
	body.SetUID(live.GetUID())
	delete(body.Object, "apiVersion")
	delete(body.Object, "kind")
	raw, err := json.Marshal(body.Object)
	if err != nil {
		return Change{}, fmt.Errorf("encoding %s: %w", describe(u), err)
	}
	o := metav1.PatchOptions{FieldManager: FieldManager}
	if r.common.reads() {
		o.DryRun = []string{metav1.DryRunAll}
	}
	changed, err := c.Client.Resource(resourceOf(u)).Namespace(u.GetNamespace()).Patch(ctx, u.GetName(), types.MergePatchType, raw, o)
	if err != nil {
		return Change{}, err
	}
	if r.common.reads() {
		return Change{Object: clean(changed), Live: clean(live), Action: Configured}, nil
	}
	return Change{Object: reference(changed), Action: Configured}, nil
}

// shown is a change that needs no answer of the server.
func (r *run) shown(u, live *unstructured.Unstructured, action Action) Change {
	if !r.common.reads() {
		return Change{Object: reference(live), Action: action}
	}
	after := clean(live)
	after.Object = overlay(after.Object, u.Object)
	return Change{Object: after, Live: clean(live), Action: action}
}
