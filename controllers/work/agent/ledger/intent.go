// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// The status of an object cannot be written when the object is created. What a work is
// about to write is therefore noted in an annotation of its new AppliedManifestWork, and
// counts as the list of its status until the status has one. One write thus records both
// the work and its objects before any of them is written.

const (
	// maxIntent bounds the annotation, in bytes: all annotations of an object together may
	// have 256 KiB. A longer list is written to the status before the objects are.
	maxIntent = 64 << 10
	// intentCounts and intentOver replace the annotation in memory, while its list counts
	// and afterwards.
	intentCounts = "counts"
	intentOver   = "over"
)

// intentOf returns the annotation that lists objects; empty if they are too many for it.
func intentOf(objects []workv1.AppliedManifestResourceMeta) (string, error) {
	if len(objects) == 0 {
		return "", nil
	}
	raw, err := json.Marshal(objects)
	if err != nil {
		return "", fmt.Errorf("encoding the list of objects: %w", err)
	}
	if len(raw) > maxIntent {
		return "", nil
	}
	return string(raw), nil
}

// readIntent completes a record that was just decoded: while its status lists no objects,
// those of the annotation count.
func readIntent(record *workv1.AppliedManifestWork) *workv1.AppliedManifestWork {
	raw := record.Annotations[workv1.AnnotationIntent]
	if raw == "" || raw == intentCounts || raw == intentOver {
		return record
	}
	state, objects := intentOver, apply.Recorded(record)
	if len(record.Status.AppliedResources) == 0 && objects != nil {
		state = intentCounts
	}
	record.Status.AppliedResources, record.Annotations[workv1.AnnotationIntent] = objects, state
	return record
}

// intends reports whether a record still carries the list of objects with which it was
// created.
func intends(record *workv1.AppliedManifestWork) bool {
	return record.Annotations[workv1.AnnotationIntent] != ""
}

// OnlyIntends reports whether that list counts, because the status lists no objects yet.
func OnlyIntends(record *workv1.AppliedManifestWork) bool {
	return record.Annotations[workv1.AnnotationIntent] == intentCounts
}

// withoutIntent adds the end of that list to annotations to set, once the status lists the
// objects.
func withoutIntent(record *workv1.AppliedManifestWork, values map[string]string) map[string]string {
	if !intends(record) || OnlyIntends(record) {
		return values
	}
	values = maps.Clone(values)
	values[workv1.AnnotationIntent] = ""
	return values
}
