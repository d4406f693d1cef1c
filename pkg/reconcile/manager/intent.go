// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Stamp notes on o a hash of o in an annotation, and returns it. A hub that
// starts again tells by it, and by SoleManager, from metadata alone that an
// object is what would be applied, and sends nothing.
func Stamp(o reconcile.Object) string {
	raw, err := json.Marshal(o)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	hash := hex.EncodeToString(sum[:12])
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1.AnnotationIntent] = hash
	o.SetAnnotations(annotations)
	return hash
}

// SoleManager tells whether owner alone wrote an object, by server-side apply;
// writers of its status do not count.
func SoleManager(fields []metav1.ManagedFieldsEntry, owner string) bool {
	return !slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "" && (f.Manager != owner || f.Operation != metav1.ManagedFieldsOperationApply)
	})
}
