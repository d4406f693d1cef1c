// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement/decisions"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// reporter is the reporting controller of the Events.
const reporter = "placement-controller"

const (
	// maxEvents bounds the Events of one kind in a pass; one more covers the rest.
	maxEvents = 5
	// maxScores bounds the text of scores.
	maxScores = 1000
)

// news is one kind of Event.
type news struct{ reason, action, verb, kind string }

// events reports decisions that are created, changed and deleted, and the scores behind a
// change. Temporary objects that only help a change along are not reported.
func events(s State, writes []decisions.Write) []reconcile.Event {
	made, changed, gone := touched(writes)
	kind := corev1.EventTypeNormal
	if len(s.Result.Warnings) > 0 {
		kind = corev1.EventTypeWarning
	}
	out := decisionEvents(s, news{"DecisionCreate", "DecisionCreated", "created", corev1.EventTypeNormal}, made)
	out = append(out, decisionEvents(s, news{"DecisionUpdate", "DecisionUpdated", "updated", kind}, changed)...)
	if len(changed) > 0 && s.Scores != nil {
		if text := scores(s.Scores()); text != "" {
			out = append(out, reconcile.Event{
				Type: corev1.EventTypeNormal, Reason: "ScoreUpdate", Action: "ScoreUpdated", Message: text, Reporter: reporter,
				Related: decision(s.Placement.Namespace, changed[0]), After: reconcile.Writes,
			})
		}
	}
	return append(out, decisionEvents(s, news{"DecisionDelete", "DecisionDeleted", "deleted", corev1.EventTypeNormal}, gone)...)
}

// touched returns the names of the decisions that are created, changed, and deleted.
func touched(writes []decisions.Write) (made, changed, gone []string) {
	of := func(kind decisions.Kind) []string {
		var names []string
		for _, w := range writes {
			if w.Kind == kind && !slices.Contains(names, w.Name) {
				names = append(names, w.Name)
			}
		}
		return names
	}
	without := func(names, others []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
	}
	created, deleted := of(decisions.Create), of(decisions.Delete)
	return without(created, deleted), without(of(decisions.Status), created), without(deleted, created)
}

// decisionEvents returns one Event for each decision, and one for the rest when there are
// many.
func decisionEvents(s State, n news, names []string) []reconcile.Event {
	var out []reconcile.Event
	for i, name := range names {
		text := fmt.Sprintf("Decision %s is %s", name, n.verb)
		last := i == maxEvents && len(names) > maxEvents+1
		if last {
			text = fmt.Sprintf("%d more decisions are %s", len(names)-maxEvents, n.verb)
		}
		text += fmt.Sprintf(" with placement %s in namespace %s", s.Placement.Name, s.Placement.Namespace)
		if n.kind == corev1.EventTypeWarning {
			text += ": " + strings.Join(s.Result.Warnings, "; ")
		}
		out = append(out, reconcile.Event{
			Type: n.kind, Reason: n.reason, Action: n.action, Message: text, Reporter: reporter, Related: decision(s.Placement.Namespace, name),
			After: reconcile.Writes,
		})
		if last {
			break
		}
	}
	return out
}

// scores lists clusters with their scores, by name, in a bounded text.
func scores(all []schedule.Scored) string {
	var b strings.Builder
	for _, one := range all {
		part := fmt.Sprintf("%s:%d ", one.Cluster, one.Score)
		if b.Len()+len(part) > maxScores {
			b.WriteString("......")
			break
		}
		b.WriteString(part)
	}
	return b.String()
}
