// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"hash/fnv"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Reasons of Events.
const (
	// ReasonWarning is that of an Event about a probable mistake.
	ReasonWarning = "ManifestsQuestionable"
	// ReasonRequestWaits is that of an Event about a certificate request that the runner
	// may not answer, or cannot sign.
	ReasonRequestWaits = "CertificateRequestWaits"
)

// maxWarned is the number of instances whose last warnings are remembered.
const maxWarned = 8192

// warned remembers the last warnings of instances, so that they are not repeated at each
// pass. Its zero value is ready; it is safe for concurrent use.
type warned struct {
	mu   sync.Mutex
	last map[types.UID]uint64
}

// add adds an Event with the warnings to a plan, unless they are the same as last time.
func (w *warned) add(plan *reconcile.Plan, about *addonv1alpha1.ManagedClusterAddOn, warnings []string) {
	hash := fnv.New64a()
	text := strings.Join(warnings, "; ")
	_, _ = hash.Write([]byte(text))
	w.mu.Lock()
	defer w.mu.Unlock()
	if text == "" {
		delete(w.last, about.UID)
		return
	}
	if before, known := w.last[about.UID]; known && before == hash.Sum64() {
		return
	}
	if w.last == nil || len(w.last) >= maxWarned {
		w.last = map[types.UID]uint64{}
	}
	w.last[about.UID] = hash.Sum64()
	plan.Events = append(plan.Events, reconcile.Event{
		Type: corev1.EventTypeWarning, Reason: ReasonWarning, Once: true, Of: strconv.FormatUint(hash.Sum64(), 16), Message: text,
	})
}
