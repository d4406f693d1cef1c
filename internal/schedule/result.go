// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Key is namespace and name of a Placement, or of an object in a namespace.
type Key = types.NamespacedName

// Skip is why nothing is to be decided for a Placement.
type Skip string

// Why nothing is to be decided. Decisions and status stay as they are.
const (
	// SkipNone means that there is a decision.
	SkipNone Skip = ""
	// SkipUnknown means that there is no such Placement.
	SkipUnknown Skip = "Unknown"
	// SkipDeleting means that the Placement is being deleted; its decisions go
	// with it.
	SkipDeleting Skip = "Deleting"
	// SkipDisabled means that an annotation freezes the Placement.
	SkipDisabled Skip = "Disabled"
	// SkipMore means that the CEL expressions of this Placement are dear, and
	// that the work goes on with the next Decide. It should be called soon, after
	// those of others.
	SkipMore Skip = "More"
)

// Result is what a Placement selects at one moment.
type Result struct {
	// Key names the Placement.
	Key Key
	// Generation of the Placement that was followed; the conditions carry it.
	Generation int64
	// Skip is not empty where nothing may be written; all below is empty then.
	Skip Skip

	// Groups are the decision groups in order; the index of a group is its place.
	// There is always one at least, which may be empty. Only a Placement whose
	// name cannot be the value of a label has none: it can have no decisions.
	Groups []Group
	// Selected is the number of clusters in all groups.
	Selected int
	// Unscheduled is how many more are wanted; 0 where all that fit are wanted.
	Unscheduled int
	// Candidates are in a bound set and not being deleted; Matched of them fit a
	// predicate; Feasible of those have no taint that keeps them out.
	Candidates, Matched, Feasible int
	// Scores are the feasible clusters with their total score by name. Only
	// Explain fills it in, for scores are not computed where all are selected;
	// Scheduler.Scores gives them where they are wanted.
	Scores []Scored

	// Satisfied and Misconfigured are the conditions PlacementSatisfied and
	// PlacementMisconfigured, without lastTransitionTime.
	Satisfied, Misconfigured metav1.Condition
	// Problems are what is wrong or without effect in the spec. Those with
	// severity SeverityError make the Placement misconfigured.
	Problems []Problem
	// Warnings are bounded sentences on what could not be taken into account:
	// scores that have expired, sets that cannot be read.
	Warnings []string
	// Kept is true where the spec cannot be followed and Groups are the last
	// decisions.
	Kept bool
	// Delayed is true where scores alone would change the decisions, and
	// scoreRateLimit holds that back: Groups are the last decisions.
	Delayed bool
	// ScoreUpdate is true where scores alone change the decisions now: the time
	// belongs into status.lastScoreUpdateTime.
	ScoreUpdate bool
	// LookAgain is when time alone may change the decisions: a toleration or a
	// score expires, or scoreRateLimit lets a change through. Zero is never.
	LookAgain time.Time
}

// Group is one decision group.
type Group struct {
	// Name of the group, empty for groups without one.
	Name string
	// Clusters of the group in the order that sortBy asks for.
	Clusters []Decision
}

// Decision is one selected cluster.
type Decision struct {
	// Cluster is the name of the ManagedCluster.
	Cluster string
	// Score is its total score, where sortBy is Score; else nil.
	Score *int64
}

// Scored is a cluster with its total score.
type Scored struct {
	// Cluster is the name of the ManagedCluster.
	Cluster string
	// Score is the sum of weight times score over all prioritizers.
	Score int64
}

// Severity of a Problem.
type Severity string

// Severities of a Problem.
const (
	// SeverityError: the spec cannot be followed. Admission refuses it, and a
	// stored Placement keeps its last decisions.
	SeverityError Severity = "Error"
	// SeverityWarning: the spec can be followed, but part of it has no effect.
	SeverityWarning Severity = "Warning"
)

// Problem is something wrong with the spec of a Placement.
type Problem struct {
	// Severity is what follows from it.
	Severity Severity
	// Plugin is the step that cannot work: Predicate, TaintToleration, or empty.
	// The message of the condition begins with it.
	Plugin string
	// Field is the path of the field, for example spec.tolerations[0].operator.
	Field string
	// Message says what is wrong, in the contract's words where it has any.
	Message string
	// Fix says how to put it right.
	Fix string
}

// Text is the problem in one line: message, field and fix.
func (p Problem) Text() string {
	return p.Message + " (" + p.Field + ": " + p.Fix + ")"
}
