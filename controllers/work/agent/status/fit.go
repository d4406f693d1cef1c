// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	// maxWork bounds a work with its status, in bytes. The default limit of etcd is 1.5
	// MiB; the rest is for what the API server adds.
	maxWork = 1_400_000
	// leastRoom is what a status is granted in any case, in bytes.
	leastRoom = 64 << 10
	// entryComma is the length of the separator between two entries.
	entryComma = 1
	// leftOutText ends the message of Applied of a work whose status is incomplete.
	leftOutText = " manifests are left out of the status, which would not fit in the object"
)

// Room returns how many bytes the status of a work may take.
func Room(work *workv1.ManifestWork) int {
	rest := work.DeepCopy()
	rest.Status = workv1.ManifestWorkStatus{}
	return max(maxWork-size(rest), leastRoom)
}

func size(value any) int {
	raw, _ := json.Marshal(value)
	return len(raw)
}

// Fit shrinks a status that does not fit in room bytes: messages of conditions that hold
// are dropped first, then the entries of healthy manifests, then feedback values, then
// other entries from the end. The condition of an entry says if its values were left out;
// the message of the work's condition Applied says how many entries were. before is the
// current status.
func Fit(s, before workv1.ManifestWorkStatus, room int) workv1.ManifestWorkStatus {
	if size(s) <= room {
		return s
	}
	entries := make([]workv1.ManifestCondition, 0, len(s.ResourceStatus.Manifests))
	for _, e := range s.ResourceStatus.Manifests {
		entries = append(entries, terse(e))
	}
	out := workv1.ManifestWorkStatus{Conditions: slices.Clone(s.Conditions)}
	out.ResourceStatus.Manifests = entries
	if size(out) <= room {
		return out
	}
	out.ResourceStatus.Manifests = nil
	reportLeftOut(out.Conditions, len(entries), len(entries))
	for _, e := range chooseEntries(entries, before.ResourceStatus.Manifests, room-size(out)) {
		if e != nil {
			out.ResourceStatus.Manifests = append(out.ResourceStatus.Manifests, *e)
		}
	}
	out.Conditions = slices.Clone(s.Conditions)
	if dropped := len(entries) - len(out.ResourceStatus.Manifests); dropped > 0 {
		reportLeftOut(out.Conditions, dropped, len(entries))
	}
	return out
}

// chooseEntries returns the entries that fit in left bytes, nil for one that does not.
func chooseEntries(entries, before []workv1.ManifestCondition, left int) []*workv1.ManifestCondition {
	out := make([]*workv1.ManifestCondition, len(entries))
	add := func(wanted bool, form func(workv1.ManifestCondition) workv1.ManifestCondition) {
		for i := range entries {
			if isHealthy(entries[i]) != wanted {
				continue
			}
			e := form(entries[i])
			if left -= size(e) + entryComma; left < 0 {
				return
			}
			out[i] = &e
		}
	}
	add(false, func(e workv1.ManifestCondition) workv1.ManifestCondition { return dropValues(e, before) })
	for i := range entries {
		if out[i] == nil || len(out[i].StatusFeedback.Values) == len(entries[i].StatusFeedback.Values) {
			continue
		}
		if more := size(entries[i]) - size(*out[i]); more <= left {
			left -= more
			out[i] = &entries[i]
		}
	}
	add(true, func(e workv1.ManifestCondition) workv1.ManifestCondition { return e })
	return out
}

// dropValues returns an entry without its values, with a condition that says so, if that
// is smaller.
func dropValues(e workv1.ManifestCondition, before []workv1.ManifestCondition) workv1.ManifestCondition {
	out := e
	out.StatusFeedback, out.Conditions = workv1.StatusFeedbackResult{}, slices.Clone(e.Conditions)
	c := apimeta.FindStatusCondition(out.Conditions, workv1.ConditionStatusFeedbackSynced)
	if c == nil || len(e.StatusFeedback.Values) == 0 {
		return e
	}
	v := ValuesLeftOut()
	c.Status, c.Reason, c.Message = v.Status, v.Reason, v.Message
	if old := Entry(before, e.ResourceMeta); old != nil && withoutValues(*old) {
		c.LastTransitionTime = apimeta.FindStatusCondition(old.Conditions, workv1.ConditionStatusFeedbackSynced).LastTransitionTime
	}
	if size(out) >= size(e) {
		return e
	}
	return out
}

// withoutValues reports whether the values of an entry were left out.
func withoutValues(e workv1.ManifestCondition) bool {
	c := apimeta.FindStatusCondition(e.Conditions, workv1.ConditionStatusFeedbackSynced)
	return c != nil && c.Message == ValuesLeftOut().Message
}

// Crowded reports whether entries or values were left out of a status.
func Crowded(s workv1.ManifestWorkStatus) bool {
	return LeftOut(s) || slices.ContainsFunc(s.ResourceStatus.Manifests, withoutValues)
}

// LeftOut reports whether entries were left out of a status.
func LeftOut(s workv1.ManifestWorkStatus) bool {
	c := apimeta.FindStatusCondition(s.Conditions, workv1.ConditionApplied)
	return c != nil && strings.HasSuffix(c.Message, leftOutText)
}

// reportLeftOut adds to the condition how many entries are left out.
func reportLeftOut(conditions []metav1.Condition, n, of int) {
	if c := apimeta.FindStatusCondition(conditions, workv1.ConditionApplied); c != nil {
		if at := strings.LastIndex(c.Message, "; "); at >= 0 && strings.HasSuffix(c.Message, leftOutText) {
			c.Message = c.Message[:at]
		}
		c.Message = fmt.Sprintf("%s; %d of %d%s", c.Message, n, of, leftOutText)
	}
}

// terse returns an entry without the messages of conditions that hold.
func terse(e workv1.ManifestCondition) workv1.ManifestCondition {
	e.Conditions = slices.Clone(e.Conditions)
	for i := range e.Conditions {
		if c := &e.Conditions[i]; c.Status == metav1.ConditionTrue {
			c.Message = ""
		}
	}
	return e
}

// isHealthy reports whether an entry says nothing except that all is well.
func isHealthy(e workv1.ManifestCondition) bool {
	return len(e.StatusFeedback.Values) == 0 && !slices.ContainsFunc(e.Conditions, func(c metav1.Condition) bool {
		return c.Status != metav1.ConditionTrue
	})
}
