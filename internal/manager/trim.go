// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// SharedAnnotation is put by TrimMetadata on the copy in the cache, never on
// the object itself, when others than one field manager own parts of it.
const SharedAnnotation = "cache.local/shared-with-other-managers"

// Trim drops what no loop reads: managedFields and what kubectl apply noted.
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

// trimmed are the managedFields of an object that went through TrimMetadata: none,
// but not nil, as they are of an object that somebody took them from.
var trimmed = []metav1.ManagedFieldsEntry{}

// TrimMetadata keeps, of the annotations, only those named. With an owner, which is
// for roles and bindings, it marks those that not owner alone manages, that say
// nothing, or that do not tell: anybody who may write an object may take its
// managedFields away. The zero owner marks none. What was trimmed before is left as
// it is.
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
		var kept map[string]string
		keep := func(key, value string) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
		for key, value := range o.GetAnnotations() {
			if slices.Contains(annotations, key) {
				keep(key, value)
			}
		}
		if owner != "" && (len(fields) == 0 || !SoleManager(fields, owner) || lacks(fields)) {
			keep(SharedAnnotation, "true")
		}
		o.SetAnnotations(kept)
		o.SetManagedFields(trimmed)
		return in, nil
	}
}

// lacks tells whether somebody took the rules of a role, or the subjects of a binding,
// away whole: who removes a field owns nothing afterwards, so that nothing but the
// missing field tells of it. Which of the two it is, metadata does not say.
func lacks(fields []metav1.ManagedFieldsEntry) bool {
	has := func(field string) bool {
		return slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
			return f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(field))
		})
	}
	return !has(`"f:rules":`) && (!has(`"f:roleRef":`) || !has(`"f:subjects":`))
}
