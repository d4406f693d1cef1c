// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Outline is what is left of a manifest for those who decide again and again on what was
// rendered once: enough to tell that all is as it is wanted, and not enough to write it.
// It is for instances that stay and run on their own cluster.
type Outline struct {
	APIVersion, Kind, Namespace, Name string
	// Digest and Size are those of its JSON.
	Digest string
	Size   int
	// Hook, Orphan and Idle tell the marks of hooks and of what is left behind, and
	// that a workload has no replicas.
	Hook, Orphan, Idle bool
}

// OutlineOf is the outline of a manifest.
func OutlineOf(m addonkit.Manifest) Outline {
	_, hook := m.Marked(addonv1alpha1.AnnotationPreDelete)
	replicas, found, err := unstructured.NestedInt64(m.Object.Object, "spec", "replicas")
	return Outline{
		APIVersion: m.APIVersion(), Kind: m.Kind, Namespace: m.Namespace, Name: m.Name, Digest: digest(m.Raw), Size: len(m.Raw),
		Hook: hook, Orphan: m.Orphaned(), Idle: found && err == nil && replicas == 0,
	}
}

// Manifest stands for the manifest in a State. A plan that Writes must not be carried
// out: it has nothing to write.
func (o Outline) Manifest() (addonkit.Manifest, error) {
	raw, err := json.Marshal(stub{o.APIVersion, o.Kind, o.Namespace, o.Name, o.Digest})
	if err != nil {
		return addonkit.Manifest{}, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind}}
	marks := map[string]string{}
	if o.Hook {
		marks[addonv1alpha1.AnnotationPreDelete] = ""
	}
	if o.Orphan {
		marks[addonv1alpha1.AnnotationDeletionOrphan] = ""
	}
	u.SetAnnotations(marks)
	if o.Idle {
		u.Object["spec"] = map[string]any{"replicas": int64(0)}
	}
	id := addonkit.ID{GroupVersionKind: schema.FromAPIVersionAndKind(o.APIVersion, o.Kind), Namespace: o.Namespace, Name: o.Name}
	return addonkit.Manifest{ID: id, Object: u, Raw: raw, Size: o.Size}, nil
}

// Writes tells whether a plan of Decide has manifests to write.
func Writes(p reconcile.Plan) bool {
	return len(reconcile.Of[reconcile.Create](p.Writes))+len(reconcile.Of[reconcile.Patch](p.Writes)) > 0
}

// Waits tells that an instance which stays gets nothing yet: its cluster is not there or
// on its way out, or the hub has not said yet what counts. Decide says nothing then,
// whatever there is to deploy.
func (s State) Waits() bool {
	return s.AddOn.DeletionTimestamp == nil && (s.Cluster == nil || s.Cluster.DeletionTimestamp != nil || !s.ready())
}
