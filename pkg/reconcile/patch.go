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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// objectPatch is the difference between the gathered object and the decided one, as the
// three writes that Execute sends.
type objectPatch struct {
	resource schema.GroupVersionResource
	key      Key
	uid      types.UID
	version  string
	gone     bool

	object Object
	// before and after are nil while nothing differs: most passes change nothing, and a
	// process that starts makes an objectPatch for every object there is.
	before, after map[string]any
}

func newObjectPatch(before, after Object) (*objectPatch, error) {
	gvk := before.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		return nil, fmt.Errorf("reconciling %s: its apiVersion and kind are not set", name(before))
	}
	p := &objectPatch{
		resource: ResourceOf(gvk),
		key:      Key{Namespace: before.GetNamespace(), Name: before.GetName()},
		uid:      before.GetUID(), version: before.GetResourceVersion(),
		object: before,
	}
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
		return nil, fmt.Errorf("encoding %s: %w", name(o), err)
	}
	return m, nil
}

// String names the object for messages.
func (p *objectPatch) String() string {
	if p.key.Namespace == "" {
		return p.resource.Resource + " " + p.key.Name
	}
	return p.resource.Resource + " " + p.key.String()
}

// main returns the patch of metadata and spec. Finalizers that the decision drops are kept
// here; release drops them.
func (p *objectPatch) main() map[string]any {
	out := map[string]any{}
	if d := p.metadata(p.keptFinalizers()); len(d) > 0 {
		out["metadata"] = d
	}
	for _, key := range fields(p.before, p.after) {
		if d, differ := difference(p.before[key], p.after[key]); differ {
			out[key] = d
		}
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
	kept := p.keptFinalizers()
	want := finalizers(p.after)
	if len(kept) == len(want) || p.gone {
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

// metadata returns the difference in the parts of metadata that a loop may change: labels,
// annotations, owner references and finalizers.
func (p *objectPatch) metadata(want []string) map[string]any {
	b, _ := p.before["metadata"].(map[string]any)
	a, _ := p.after["metadata"].(map[string]any)
	out := map[string]any{}
	for _, key := range []string{"labels", "annotations", "ownerReferences"} {
		if d, differ := difference(b[key], a[key]); differ {
			out[key] = d
		}
	}
	have := finalizers(p.before)
	if !sameSet(have, want) {
		out["finalizers"] = want
	}
	return out
}

// setFailure sets the condition that the plan wants after a failure.
func (p *objectPatch) setFailure(c metav1.Condition, err error, now time.Time) error {
	c.Message = strings.TrimSpace(c.Message + " " + oneLine(err))
	if p.before == nil {
		if err := p.compare(p.object); err != nil {
			return err
		}
	}
	var conditions []metav1.Condition
	status, _ := p.after["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	holder := struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	}{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"conditions": status["conditions"]}, &holder); err != nil {
		return fmt.Errorf("reading the conditions of %s: %w", p, err)
	}
	conditions = p.asBefore(holder.Conditions, c.Type)
	SetCondition(&conditions, c, now)
	holder.Conditions = conditions
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&holder)
	if err != nil {
		return fmt.Errorf("writing the conditions of %s: %w", p, err)
	}
	status["conditions"] = m["conditions"]
	p.after["status"] = status
	return nil
}

// asBefore replaces the planned condition of a type by the stored one, so that a lasting
// failure keeps its transition time and is not written again.
func (p *objectPatch) asBefore(planned []metav1.Condition, kind string) []metav1.Condition {
	stored := struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(p.before, &stored) != nil {
		return planned
	}
	was := apimeta.FindStatusCondition(stored.Status.Conditions, kind)
	is := apimeta.FindStatusCondition(planned, kind)
	if was != nil && is != nil {
		*is = *was
	}
	return planned
}

// oneLine returns the message of joined errors on one line.
func oneLine(err error) string {
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func finalizers(object map[string]any) []string {
	f, _, _ := unstructured.NestedStringSlice(object, "metadata", "finalizers")
	return f
}

func sameSet(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
}

// fields returns the top-level fields other than identity, metadata and status.
func fields(a, b map[string]any) []string {
	var out []string
	for _, m := range []map[string]any{a, b} {
		for key := range m {
			if key != "apiVersion" && key != "kind" && key != "metadata" && key != "status" && !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	return out
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
