// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

// maxMessage is how much of a message an API object holds.
const maxMessage = 32768

// SetCondition puts c into conditions and tells whether anything changed. The
// transition time is now when the status changed, else what it was; a message
// over the API's limit is cut.
func SetCondition(conditions *[]metav1.Condition, c metav1.Condition, now time.Time) bool {
	c.Message = excerpt.Within(c.Message, maxMessage)
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	return apimeta.SetStatusCondition(conditions, c)
}
