// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// maxTexts bounds the messages of all manifests of a work together, in bytes, so that a
// status never grows towards the size limit of an object.
const maxTexts = 256 << 10

// Verdict is one condition of a manifest without its type.
type Verdict struct {
	// Status, Reason and Message are those of the condition.
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// Outcome is the result for one manifest.
type Outcome struct {
	// Meta names the object; its ordinal is the manifest's position in the spec.
	Meta workv1.ManifestResourceMeta
	// Applied, Available and Feedback are the conditions Applied, Available and
	// StatusFeedbackSynced. A verdict without a status leaves the condition unchanged.
	Applied, Available, Feedback Verdict
	// Values are the feedback values if they are Fresh; otherwise the values in the
	// status stay.
	Values []workv1.FeedbackValue
	Fresh  bool
	// Rules are the conditions that the work's condition rules made.
	Rules []RuleVerdict
}

// RuleVerdict is a condition that a condition rule made.
type RuleVerdict struct {
	// Condition is its type.
	Condition string
	Verdict
}

// Applied is the verdict for a manifest that is on the cluster. A note, if there is one,
// says what was special.
func Applied(note string) Verdict {
	message := workv1.MessageManifestApplied
	if note != "" {
		message += ": " + note
	}
	return Verdict{metav1.ConditionTrue, workv1.ReasonAppliedManifestComplete, message}
}

// Failed is the verdict for a manifest that could not be applied.
func Failed(cause string) Verdict {
	return Verdict{metav1.ConditionFalse, workv1.ReasonAppliedManifestFailed, fmt.Sprintf(workv1.MessageManifestFailed, cause)}
}

// IgnoreFieldsFailed is the verdict for a manifest whose fields to ignore could not be
// determined.
func IgnoreFieldsFailed(cause string) Verdict {
	message := fmt.Sprintf(workv1.MessageManifestIgnoreFieldsFailed, cause)
	return Verdict{metav1.ConditionFalse, workv1.ReasonAppliedManifestSSAIgnoreFieldError, message}
}

// Exists is the verdict Available of an object that exists or does not.
func Exists(there bool) Verdict {
	if there {
		return Verdict{metav1.ConditionTrue, workv1.ReasonResourceAvailable, workv1.MessageResourceAvailable}
	}
	return Verdict{metav1.ConditionFalse, workv1.ReasonResourceNotAvailable, workv1.MessageResourceNotAvailable}
}

// Unreadable is the verdict Available of an object that could not be read.
func Unreadable(cause string) Verdict {
	message := fmt.Sprintf(workv1.MessageFetchingResourceFailed, cause)
	return Verdict{metav1.ConditionUnknown, workv1.ReasonFetchingResourceFailed, message}
}

// Unnamed is the verdict Available of a manifest that names no object.
func Unnamed() Verdict {
	return Verdict{metav1.ConditionUnknown, workv1.ReasonIncompleteResourceMeta, workv1.MessageIncompleteResourceMeta}
}

// NoFeedback is the verdict StatusFeedbackSynced where there are no rules.
func NoFeedback() Verdict {
	return Verdict{metav1.ConditionTrue, workv1.ReasonNoStatusFeedbackSynced, ""}
}

// FeedbackSynced is the verdict StatusFeedbackSynced where all values were read.
func FeedbackSynced() Verdict {
	return Verdict{metav1.ConditionTrue, workv1.ReasonStatusFeedbackSynced, ""}
}

// FeedbackFailed is the verdict StatusFeedbackSynced where values are missing.
func FeedbackFailed(cause string) Verdict {
	message := fmt.Sprintf(workv1.MessageStatusFeedbackFailed, cause)
	return Verdict{metav1.ConditionFalse, workv1.ReasonStatusFeedbackSyncFailed, message}
}

// ValuesLeftOut is the verdict StatusFeedbackSynced where the values that were
// read would not fit in the work.
func ValuesLeftOut() Verdict {
	return FeedbackFailed("the values would not fit in the status of the work; ask for fewer of them, or split the work")
}

// Build returns the desired status of a work of that generation.
func Build(before workv1.ManifestWorkStatus, generation int64, outcomes []Outcome, now time.Time) workv1.ManifestWorkStatus {
	after := workv1.ManifestWorkStatus{Conditions: slices.Clone(before.Conditions)}
	after.ResourceStatus.Manifests = make([]workv1.ManifestCondition, 0, len(outcomes))
	dropStaleRules(&after.Conditions, generation)
	limit := textLimit(outcomes)
	for _, o := range outcomes {
		entry := workv1.ManifestCondition{ResourceMeta: o.Meta}
		if old := Entry(before.ResourceStatus.Manifests, o.Meta); old != nil {
			entry.Conditions = slices.Clone(old.Conditions)
			entry.StatusFeedback = old.StatusFeedback
		}
		dropStaleRules(&entry.Conditions, generation)
		setApplied(&entry.Conditions, bounded(o.Applied, limit), generation, now)
		setCondition(&entry.Conditions, workv1.ConditionAvailable, bounded(o.Available, limit), 0, now)
		setFeedback(&entry, o, limit, now)
		for _, r := range o.Rules {
			setCondition(&entry.Conditions, r.Condition, bounded(r.Verdict, limit), generation, now)
		}
		after.ResourceStatus.Manifests = append(after.ResourceStatus.Manifests, entry)
	}
	if len(outcomes) > 0 {
		setCondition(&after.Conditions, workv1.ConditionApplied, workApplied(outcomes), generation, now)
	}
	setCondition(&after.Conditions, workv1.ConditionAvailable, workAvailable(outcomes), generation, now)
	setAggregated(&after, generation, now)
	return after
}

func setCondition(conditions *[]metav1.Condition, kind string, v Verdict, generation int64, now time.Time) {
	reconcile.SetCondition(conditions, metav1.Condition{
		Type: kind, Status: v.Status, Reason: v.Reason, Message: v.Message, ObservedGeneration: generation,
	}, now)
}

// setApplied sets Applied of a manifest. With a new generation the condition is replaced:
// its transition time is when that generation was applied.
func setApplied(conditions *[]metav1.Condition, v Verdict, generation int64, now time.Time) {
	*conditions = slices.DeleteFunc(*conditions, func(c metav1.Condition) bool {
		return c.Type == workv1.ConditionApplied && c.ObservedGeneration != generation
	})
	setCondition(conditions, workv1.ConditionApplied, v, generation, now)
}

// setFeedback replaces the values by fresh ones. When they differ, the condition is
// replaced: its transition time is when values last changed.
func setFeedback(entry *workv1.ManifestCondition, o Outcome, limit int, now time.Time) {
	if o.Fresh && !equality.Semantic.DeepEqual(entry.StatusFeedback.Values, o.Values) {
		entry.StatusFeedback.Values = o.Values
		apimeta.RemoveStatusCondition(&entry.Conditions, workv1.ConditionStatusFeedbackSynced)
	}
	if o.Feedback.Status != "" {
		setCondition(&entry.Conditions, workv1.ConditionStatusFeedbackSynced, bounded(o.Feedback, limit), 0, now)
	}
}

// dropStaleRules removes conditions that rules of an earlier generation made.
func dropStaleRules(conditions *[]metav1.Condition, generation int64) {
	*conditions = slices.DeleteFunc(*conditions, func(c metav1.Condition) bool {
		return strings.HasPrefix(c.Reason, workv1.ReasonPrefixConditionRule) && c.ObservedGeneration != generation
	})
}

// Entry returns the entry of a manifest: the one with the same metadata, else the only
// one that differs in its ordinal alone; nil if there is none.
func Entry(entries []workv1.ManifestCondition, meta workv1.ManifestResourceMeta) *workv1.ManifestCondition {
	if at := int(meta.Ordinal); at < len(entries) && entries[at].ResourceMeta == meta {
		return &entries[at]
	}
	var moved *workv1.ManifestCondition
	for i := range entries {
		e := &entries[i]
		if e.ResourceMeta == meta {
			return e
		}
		other := e.ResourceMeta
		other.Ordinal = meta.Ordinal
		if other != meta {
			continue
		}
		if moved != nil {
			return nil
		}
		moved = e
	}
	return moved
}

func workApplied(outcomes []Outcome) Verdict {
	if slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Applied.Status == metav1.ConditionFalse }) {
		return Verdict{metav1.ConditionFalse, workv1.ReasonAppliedManifestWorkFailed, workv1.MessageWorkFailed}
	}
	return Verdict{metav1.ConditionTrue, workv1.ReasonAppliedManifestWorkComplete, workv1.MessageWorkApplied}
}

func workAvailable(outcomes []Outcome) Verdict {
	count := map[metav1.ConditionStatus]int{}
	for _, o := range outcomes {
		count[o.Available.Status]++
	}
	missing, unknown, total := count[metav1.ConditionFalse], count[metav1.ConditionUnknown], len(outcomes)
	switch {
	case missing > 0:
		message := fmt.Sprintf(workv1.MessageResourcesNotAvailable, missing, total)
		return Verdict{metav1.ConditionFalse, workv1.ReasonResourcesNotAvailable, message}
	case unknown > 0:
		message := fmt.Sprintf(workv1.MessageResourcesStatusUnknown, unknown, total)
		return Verdict{metav1.ConditionUnknown, workv1.ReasonResourcesStatusUnknown, message}
	case count[metav1.ConditionTrue] == 0:
		return Verdict{metav1.ConditionUnknown, workv1.ReasonResourcesStatusUnknown, workv1.MessageNoAvailableResource}
	}
	return Verdict{metav1.ConditionTrue, workv1.ReasonResourcesAvailable, workv1.MessageResourcesAvailable}
}

// textLimit bounds the message of one condition of a work with those manifests.
func textLimit(outcomes []Outcome) int {
	conditions := 0
	for _, o := range outcomes {
		conditions += 3 + len(o.Rules)
	}
	return max(maxTexts/max(conditions, 1), 128)
}

func bounded(v Verdict, limit int) Verdict {
	v.Message = excerpt.Within(v.Message, limit)
	return v
}

// Same reports whether two statuses are the same to a reader, so that a write would
// change nothing.
func Same(a, b workv1.ManifestWorkStatus) bool { return equality.Semantic.DeepEqual(a, b) }
