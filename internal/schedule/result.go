// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Key is the namespace and name of a Placement, or of another object in a namespace.
type Key = types.NamespacedName

// Skip is why a Placement is not decided.
type Skip string

// Reasons not to decide. Decisions and status then stay unchanged.
const (
	// SkipNone means that there is a decision.
	SkipNone Skip = ""
	// SkipUnknown means that there is no such Placement.
	SkipUnknown Skip = "Unknown"
	// SkipDeleting means that the Placement is being deleted; its decisions are deleted
	// with it.
	SkipDeleting Skip = "Deleting"
	// SkipDisabled means that an annotation freezes the Placement.
	SkipDisabled Skip = "Disabled"
	// SkipMore means that the CEL expressions of this Placement are expensive, and that
	// the next Decide continues the work. Call it soon, after those of other Placements.
	SkipMore Skip = "More"
)

// Result is what a Placement selects at one time.
type Result struct {
	// Key names the Placement.
	Key Key
	// Generation is the generation of the Placement that was decided; the conditions
	// carry it.
	Generation int64
	// Skip is not empty if nothing may be written; the fields below are then empty.
	Skip Skip

	// Groups are the decision groups in order; the position of a group is its index.
	// There is always at least one, which may be empty. Only a Placement whose name
	// cannot be the value of a label has none: it can have no decisions.
	Groups []Group
	// Selected is the number of clusters in all groups.
	Selected int
	// Unscheduled is how many more clusters are wanted; 0 if all that fit are wanted.
	Unscheduled int
	// Candidates are in a bound set and not being deleted; Matched of them match a
	// predicate; Feasible of those have no taint that keeps them out.
	Candidates, Matched, Feasible int

	// Satisfied and Misconfigured are the conditions PlacementSatisfied and
	// PlacementMisconfigured, without lastTransitionTime.
	Satisfied, Misconfigured metav1.Condition
	// Problems are errors and ineffective fields of the spec. Those with severity
	// SeverityError make the Placement misconfigured.
	Problems []Problem
	// Warnings are bounded sentences about what could not be used: expired scores, sets
	// whose selector cannot be parsed.
	Warnings []string
	// Kept is true if the spec is invalid and Groups are the last decisions.
	Kept bool
	// Delayed is true if only scores would change the decisions, and scoreRateLimit holds
	// that back: Groups are the last decisions.
	Delayed bool
	// ScoreUpdate is true if only scores change the decisions now:
	// status.lastScoreUpdateTime must be set to the time of this decision.
	ScoreUpdate bool
	// LookAgain is when the decisions may change by time alone: a toleration or a score
	// expires, or scoreRateLimit permits a change. Zero means never.
	LookAgain time.Time
}

// Group is one decision group.
type Group struct {
	// Name is the name of the group, empty if it has none.
	Name string
	// Clusters are the clusters of the group in the order that sortBy asks for, with their
	// total score if sortBy is Score.
	Clusters []clusterv1beta1.ClusterDecision
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
	// SeverityError: the spec is invalid. Admission rejects it, and a stored Placement
	// keeps its last decisions.
	SeverityError Severity = "Error"
	// SeverityWarning: the spec is valid, but part of it has no effect.
	SeverityWarning Severity = "Warning"
)

// Problem is something wrong with the spec of a Placement.
type Problem struct {
	// Severity is the effect of the problem.
	Severity Severity `json:"severity"`
	// Plugin is the step that cannot work: Predicate, TaintToleration, or empty. The
	// message of the condition begins with it.
	Plugin string `json:"-"`
	// Field is the path of the field, for example spec.tolerations[0].operator.
	Field string `json:"field"`
	// Message says what is wrong, in the wording of the contract if it has one.
	Message string `json:"message"`
	// Fix says how to correct it.
	Fix string `json:"fix"`
}

// Text returns the problem in one line: message, field and fix.
func (p Problem) Text() string {
	return p.Message + " (" + p.Field + ": " + p.Fix + ")"
}
