// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

// maxMessage is the API's limit on a condition's message, in bytes.
const maxMessage = 32768

// SetCondition puts c into conditions and reports whether anything changed. The transition
// time becomes now if the status changed and stays as it was otherwise. A message over the
// API's limit is truncated.
func SetCondition(conditions *[]metav1.Condition, c metav1.Condition, now time.Time) bool {
	c.Message = excerpt.Within(c.Message, maxMessage)
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	return apimeta.SetStatusCondition(conditions, c)
}
