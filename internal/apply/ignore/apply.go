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
	ours, anyone := owners(live, manager)
	*e = evaluator{}
	if err := e.cutMap(out.Object, live.Object, declared, anyone); err != nil {
		return tooCostly(expressions, err)
	}
	if err := e.keepMap(out.Object, live.Object, found, ours); err != nil {
		return tooCostly(expressions, err)
	}
	return nil
}

// tooCostly returns the error for an object whose lists are too long for the selection.
func tooCostly(expressions []expression, err error) error {
	return expressions[0].fault(err.Error())
}

// owners returns the fields that our manager applied, and those of all managers.
func owners(live *unstructured.Unstructured, manager string) (ours, anyone *fieldpath.Set) {
	ours, anyone = fieldpath.NewSet(), fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		set := fieldpath.NewSet()
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			continue
		}
		anyone = anyone.Union(set)
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			ours = ours.Union(set)
		}
	}
	return ours, anyone
}

// digest returns the digest of the manifest without the selected fields.
func digest(desired *unstructured.Unstructured, t *tree) (string, error) {
	rest := without(desired.Object, t)
	raw, err := json.Marshal(rest)
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
