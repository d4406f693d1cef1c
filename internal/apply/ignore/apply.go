// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Apply returns the object to apply in place of desired. manager is our field manager;
// live is the live object, or nil if there is none, in which case the whole manifest is
// applied. Neither object is changed. The error is an *Error.
//
// The result carries a digest of the manifest without the fields under OnSpokePresent.
// While the live object carries the same digest, the manifest has not changed, and the
// fields under OnSpokeChange are ignored too. Removing the annotation from the live
// object brings the manifest's values back.
func (f *Fields) Apply(desired, live *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	out := desired.DeepCopy()
	e := &evaluator{}
	always, err := e.selected(f.present, out.Object)
	if err != nil {
		return nil, err
	}
	sum, err := digest(out, always)
	if err != nil {
		return nil, err
	}
	if live != nil {
		expressions := f.present
		if live.GetAnnotations()[workv1.AnnotationConfigSpecHash] == sum {
			expressions = slices.Concat(f.present, f.change)
		}
		if err := e.leaveOut(expressions, out, live, manager); err != nil {
			return nil, err
		}
	}
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[workv1.AnnotationConfigSpecHash] = sum
	out.SetAnnotations(annotations)
	return out, nil
}

// Rest returns the manifest without the fields that are ignored under either condition.
// It shares its values with desired. The error is an *Error.
func (f *Fields) Rest(desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t, err := (&evaluator{}).selected(slices.Concat(f.present, f.change), desired.Object)
	if err != nil {
		return nil, err
	}
	rest, _ := without(desired.Object, t).(map[string]any)
	return &unstructured.Unstructured{Object: rest}, nil
}

// leaveOut removes what the expressions select from the object to apply, and adds what
// our manager owns of it on the live object.
func (e *evaluator) leaveOut(expressions []expression, out, live *unstructured.Unstructured, manager string) error {
	*e = evaluator{}
	declared, err := e.selected(expressions, out.Object)
	if err != nil {
		return err
	}
	*e = evaluator{}
	found, err := e.selected(expressions, live.Object)
	if err != nil {
		return err
	}
	anyone := OwnedFields(live, func(metav1.ManagedFieldsEntry) bool { return true })
	ours := OwnedFields(live, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
	})
	*e = evaluator{}
	e.cutMap(out.Object, live.Object, declared, anyone)
	if e.err() == nil {
		e.keepMap(out.Object, live.Object, found, ours)
	}
	if err := e.err(); err != nil { // the lists of the object are too long for the selection
		return expressions[0].fault(err.Error())
	}
	return nil
}

// OwnedFields returns the fields of a live object that the chosen managers own. Managed
// fields that cannot be read have no owner.
func OwnedFields(live *unstructured.Unstructured, chosen func(metav1.ManagedFieldsEntry) bool) *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() {
		part := fieldpath.NewSet()
		if chosen(entry) && entry.FieldsV1 != nil && part.FromJSON(entry.FieldsV1.GetRawReader()) == nil {
			out = out.Union(part)
		}
	}
	return out
}

// digest returns the digest of the manifest without the selected fields.
func digest(desired *unstructured.Unstructured, t *tree) (string, error) {
	raw, err := json.Marshal(without(desired.Object, t))
	if err != nil {
		return "", fmt.Errorf("encoding the manifest: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// without returns a copy of a value without what is selected.
func without(value any, t *tree) any {
	if t == nil {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, child := range v {
			if sub := t.names[name]; sub == nil || !sub.whole {
				out[name] = without(child, sub)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for i, child := range v {
			if sub := t.places[i]; sub == nil || !sub.whole {
				out = append(out, without(child, sub))
			}
		}
		return out
	}
	return value
}
