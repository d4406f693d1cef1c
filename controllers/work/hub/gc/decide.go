// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// reasonExpired is the reason of the Event of a deletion.
const reasonExpired = "TTLExpired"

// maxWait bounds how long a ManifestWork is left alone. Timers stop while a machine
// sleeps, and the clock may be set.
const maxWait = 24 * time.Hour

// maxTTL is the longest time to live that can be represented, in seconds: 292 years.
const maxTTL = math.MaxInt64 / int64(time.Second)

var worksResource = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)

// Finished is what is remembered of a ManifestWork that is complete and has a time to
// live.
type Finished struct {
	// UID and Version are those of the object that was checked.
	UID     types.UID
	Version string
	// Since is when it became Complete.
	Since time.Time
	// TTL is how long it is kept after that, in seconds; 0 or less means not at all.
	TTL int64
}

// State is the input of a decision.
type State struct {
	// Key names the ManifestWork.
	Key reconcile.Key
	// Work is what is remembered of it.
	Work Finished
	// Now is the time of the decision.
	Now time.Time
}

// keep reduces a ManifestWork to what is remembered; false for one that will not be
// deleted as it is.
func keep(u *unstructured.Unstructured) (Finished, bool) {
	// Most works have no time to live, and are not decoded.
	_, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "deleteOption", "ttlSecondsAfterFinished")
	if !ok || u.GetDeletionTimestamp() != nil {
		return Finished{}, false
	}
	w, err := typed.FromUnstructured[workv1.ManifestWork](u)
	if err != nil || w.Spec.DeleteOption == nil || w.Spec.DeleteOption.TTLSecondsAfterFinished == nil {
		return Finished{}, false
	}
	c := apimeta.FindStatusCondition(w.Status.Conditions, workv1.ConditionComplete)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != w.Generation {
		return Finished{}, false
	}
	return Finished{UID: w.UID, Version: w.ResourceVersion, Since: c.LastTransitionTime.Time, TTL: *w.Spec.DeleteOption.TTLSecondsAfterFinished}, true
}

// same reports whether nothing changed that affects when to delete.
func same(before, now Finished) bool {
	return before.UID == now.UID && before.Since.Equal(now.Since) && before.TTL == now.TTL
}

// Decide plans the deletion. It is pure.
func Decide(s State) reconcile.Plan {
	ttl := time.Duration(min(max(s.Work.TTL, 0), maxTTL)) * time.Second
	// A time to live of zero is over at once, even if the clock of the agent that set
	// Complete is ahead of ours.
	if left := s.Work.Since.Add(ttl).Sub(s.Now); left > 0 && ttl > 0 {
		return reconcile.Plan{RequeueAfter: min(left, maxWait)}
	}
	return reconcile.Plan{
		Writes: []reconcile.Write{reconcile.Remove{Target: reconcile.Target{
			Resource: worksResource, Namespace: s.Key.Namespace, Name: s.Key.Name, UID: s.Work.UID, Version: s.Work.Version,
		}}},
		Events: []reconcile.Event{{
			Type: corev1.EventTypeNormal, Reason: reasonExpired, Once: true,
			Message: fmt.Sprintf("Deleted: it has been complete since %s, and its ttlSecondsAfterFinished is %d", s.Work.Since.UTC().Format(time.RFC3339), s.Work.TTL),
		}},
	}
}
