// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Recorded returns the objects that a record lists. The status of an object cannot be written when
// the object is created, so what a work is about to write stands in an annotation of its new
// record, which counts until the status lists objects. An annotation that cannot be read was not
// written by an agent, and lists none.
func Recorded(record *workv1.AppliedManifestWork) []workv1.AppliedManifestResourceMeta {
	if len(record.Status.AppliedResources) > 0 {
		return record.Status.AppliedResources
	}
	var intended []workv1.AppliedManifestResourceMeta
	if json.Unmarshal([]byte(record.Annotations[workv1.AnnotationIntent]), &intended) != nil {
		return nil
	}
	return intended
}
