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

// Outline is what is kept of a rendered manifest by a caller that decides repeatedly:
// enough to see that everything is as desired, but not enough to write it. It is for
// instances that are not being deleted and run on their own cluster.
type Outline struct {
	APIVersion, Kind, Namespace, Name string
	// Digest and Size are those of the manifest's JSON.
	Digest string
	Size   int
	// Hook and Orphan report the marks of hooks and of objects that are left behind; Idle
	// reports a workload without replicas.
	Hook, Orphan, Idle bool
}

// OutlineOf returns the outline of a manifest.
func OutlineOf(m addonkit.Manifest) Outline {
	_, hook := m.Marked(addonv1alpha1.AnnotationPreDelete)
	replicas, found, err := unstructured.NestedInt64(m.Object.Object, "spec", "replicas")
	return Outline{
		APIVersion: m.APIVersion(), Kind: m.Kind, Namespace: m.Namespace, Name: m.Name, Digest: digest(m.Raw), Size: len(m.Raw),
		Hook: hook, Orphan: m.Orphaned(), Idle: found && err == nil && replicas == 0,
	}
}

// Manifest returns a placeholder for use in a State. A plan that Writes must not be
// executed: there is no content to write.
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

// Writes reports whether a plan of Decide has manifests to write.
func Writes(p reconcile.Plan) bool {
	return len(reconcile.Of[reconcile.Create](p.Writes))+len(reconcile.Of[reconcile.Patch](p.Writes)) > 0
}

// Waits reports whether an instance that is not being deleted gets nothing yet: its cluster
// is missing or being deleted, or the hub has not yet said which configurations count.
// Decide then plans nothing, whatever there is to deploy.
func (s State) Waits() bool {
	return s.AddOn.DeletionTimestamp == nil && (s.Cluster == nil || s.Cluster.DeletionTimestamp != nil || !s.ready())
}
