// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// SharedAnnotation is set by TrimMetadata on the cached copy, never on the object itself,
// if other field managers own parts of the object too.
const SharedAnnotation = "cache.local/shared-with-other-managers"

// Trim drops what no loop reads: managedFields and the last-applied configuration of
// kubectl apply.
func Trim(in any) (any, error) {
	o, err := apimeta.Accessor(in)
	if err != nil {
		return in, nil //nolint:nilerr // a tombstone passes as it is
	}
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
	}
	return in, nil
}

// trimmed are the managedFields of an object that went through TrimMetadata: empty, but
// not nil as those of an object whose managedFields were removed.
var trimmed = []metav1.ManagedFieldsEntry{}

// TrimMetadata keeps only the named annotations. With an owner, which is for roles and
// bindings, it marks objects that owner does not manage alone, whose rules or subjects
// are missing, or whose managers are unknown: anyone who may write an object may remove
// its managedFields. An empty owner marks none. Objects that are already trimmed are not
// changed.
func TrimMetadata(owner string, annotations ...string) toolscache.TransformFunc {
	return func(in any) (any, error) {
		o, err := apimeta.Accessor(in)
		if err != nil {
			return in, nil //nolint:nilerr // a tombstone passes as it is
		}
		fields := o.GetManagedFields()
		if fields != nil && len(fields) == 0 {
			return in, nil
		}
		kept := o.GetAnnotations()
		maps.DeleteFunc(kept, func(key, _ string) bool { return !slices.Contains(annotations, key) })
		if owner != "" && (len(fields) == 0 || !SoleManager(fields, owner) || lacks(fields)) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[SharedAnnotation] = "true"
		}
		if len(kept) == 0 {
			kept = nil
		}
		o.SetAnnotations(kept)
		o.SetManagedFields(trimmed)
		return in, nil
	}
}

// lacks reports whether the rules of a role, or the subjects of a binding, were removed
// entirely: removing a field leaves its remover no fields, so only the missing field
// shows it. Metadata does not tell whether an object is a role or a binding.
func lacks(fields []metav1.ManagedFieldsEntry) bool {
	has := func(field string) bool {
		return slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
			return f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(field))
		})
	}
	return !has(`"f:rules":`) && (!has(`"f:roleRef":`) || !has(`"f:subjects":`))
}
