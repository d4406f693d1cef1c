// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// objectPatch is the difference between the gathered object and the decided one, as the
// three writes that Execute sends.
type objectPatch struct {
	// at is the object in its newest version that is known.
	at     Target
	gone   bool
	object Object
	// before and after are nil while nothing differs: most passes change nothing, and a
	// process that starts makes an objectPatch for every object there is.
	before, after map[string]any
}

func newObjectPatch(before, after Object) (*objectPatch, error) {
	if before.GetObjectKind().GroupVersionKind().Empty() {
		return nil, fmt.Errorf("reconciling %s: its apiVersion and kind are not set", klog.KObj(before))
	}
	p := &objectPatch{at: targetOf(before), object: before}
	p.at.UID, p.at.Version = before.GetUID(), before.GetResourceVersion()
	if after == nil || reflect.ValueOf(after).IsNil() || reflect.DeepEqual(before, after) {
		return p, nil
	}
	return p, p.compare(after)
}

// compare decodes the object as it is and as it should be.
func (p *objectPatch) compare(after Object) (err error) {
	if p.before, err = content(p.object); err != nil {
		return err
	}
	p.after, err = content(after)
	return err
}

func content(o Object) (map[string]any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.DeepCopy().Object, nil
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", klog.KObj(o), err)
	}
	return m, nil
}

// main returns the patch of metadata and spec. Of metadata it changes what a loop may
// change: labels, annotations, owner references and finalizers. Finalizers that the decision
// drops are kept here; release drops them.
func (p *objectPatch) main() map[string]any {
	diff, _ := difference(p.before, p.after)
	out, _ := diff.(map[string]any)
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(out, key)
	}
	before, _ := p.before["metadata"].(map[string]any)
	after, _ := p.after["metadata"].(map[string]any)
	meta := map[string]any{}
	for _, key := range []string{"labels", "annotations", "ownerReferences"} {
		if d, differ := difference(before[key], after[key]); differ {
			meta[key] = d
		}
	}
	// All present ones are kept, so only new ones make a difference.
	if kept := p.keptFinalizers(); len(kept) != len(finalizers(p.before)) {
		meta["finalizers"] = kept
	}
	if len(meta) > 0 {
		out["metadata"] = meta
	}
	return out
}

// status returns the patch of the status.
func (p *objectPatch) status() map[string]any {
	d, differ := difference(p.before["status"], p.after["status"])
	if !differ || p.gone {
		return nil
	}
	return map[string]any{"status": d}
}

// release returns the patch that drops finalizers.
func (p *objectPatch) release() map[string]any {
	want := finalizers(p.after)
	if len(p.keptFinalizers()) == len(want) || p.gone {
		return nil
	}
	return map[string]any{"metadata": map[string]any{"finalizers": want}}
}

// keptFinalizers returns the desired finalizers and those that are dropped last.
func (p *objectPatch) keptFinalizers() []string {
	out := slices.Clone(finalizers(p.after))
	for _, f := range finalizers(p.before) {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// conditioned holds the conditions of an object of any kind.
type conditioned struct {
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status"`
}

// setFailure sets the condition that the plan wants after a failure. A lasting failure keeps
// its transition time and is not written again: the stored condition counts, not the planned
// one.
func (p *objectPatch) setFailure(c metav1.Condition, failure error, now time.Time) error {
	c.Message = strings.TrimSpace(c.Message + " " + strings.ReplaceAll(failure.Error(), "\n", "; "))
	if p.before == nil {
		if err := p.compare(p.object); err != nil {
			return err
		}
	}
	var stored, planned conditioned
	convert := runtime.DefaultUnstructuredConverter
	if err := errors.Join(convert.FromUnstructured(p.before, &stored), convert.FromUnstructured(p.after, &planned)); err != nil {
		return fmt.Errorf("reading the conditions of %s: %w", p.at, err)
	}
	was, is := apimeta.FindStatusCondition(stored.Status.Conditions, c.Type), apimeta.FindStatusCondition(planned.Status.Conditions, c.Type)
	if was != nil && is != nil {
		*is = *was
	}
	SetCondition(&planned.Status.Conditions, c, now)
	m, err := convert.ToUnstructured(&planned)
	if err != nil {
		return fmt.Errorf("writing the conditions of %s: %w", p.at, err)
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(m, "status", "conditions")
	return unstructured.SetNestedField(p.after, conditions, "status", "conditions")
}

func finalizers(object map[string]any) []string {
	f, _, _ := unstructured.NestedStringSlice(object, "metadata", "finalizers")
	return f
}

// difference returns the JSON merge patch that turns a into b, and whether they differ.
// Lists are replaced as a whole.
func difference(a, b any) (any, bool) {
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	if !aok || !bok {
		if empty(a) && empty(b) {
			return nil, false
		}
		return b, !reflect.DeepEqual(a, b)
	}
	out := map[string]any{}
	for key, value := range bm {
		if d, differ := difference(am[key], value); differ {
			out[key] = d
		}
	}
	for key, value := range am {
		if _, ok := bm[key]; !ok && !empty(value) {
			out[key] = nil
		}
	}
	return out, len(out) > 0
}

// empty reports whether the API server stores v as absent.
func empty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(x) == 0
	case []any:
		return len(x) == 0
	}
	return false
}

var errNoLoop = errors.New("a loop needs a name and a Reconcile function")
