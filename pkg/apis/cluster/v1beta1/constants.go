// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Labels of a PlacementDecision.
const (
	// LabelPlacement holds the name of the Placement.
	LabelPlacement = "cluster.open-cluster-management.io/placement"
	// LabelDecisionGroupName holds the name of the decision group, or "".
	LabelDecisionGroupName = "cluster.open-cluster-management.io/decision-group-name"
	// LabelDecisionGroupIndex holds the index of the decision group.
	LabelDecisionGroupIndex = "cluster.open-cluster-management.io/decision-group-index"
)

// AnnotationSchedulingDisable on a Placement, set to "true", freezes its decisions.
const AnnotationSchedulingDisable = "cluster.open-cluster-management.io/experimental-scheduling-disable"

// MaxDecisionsPerObject is the maximum number of decisions in a PlacementDecision.
const MaxDecisionsPerObject = 100

// Built-in prioritizers.
const (
	// PrioritizerBalance prefers clusters with few decisions.
	PrioritizerBalance = "Balance"
	// PrioritizerSteady prefers clusters that are already selected.
	PrioritizerSteady = "Steady"
	// PrioritizerResourceAllocatableCPU prefers clusters with much free CPU.
	PrioritizerResourceAllocatableCPU = "ResourceAllocatableCPU"
	// PrioritizerResourceAllocatableMemory prefers clusters with much free memory.
	PrioritizerResourceAllocatableMemory = "ResourceAllocatableMemory"
)

// Conditions of a Placement with their reasons.
const (
	// ConditionSatisfied is True when as many clusters were selected as requested.
	ConditionSatisfied = "PlacementSatisfied"
	// ReasonAllDecisionsScheduled goes with PlacementSatisfied True.
	ReasonAllDecisionsScheduled = "AllDecisionsScheduled"
	// ReasonNoManagedClusterSetBindings goes with PlacementSatisfied False.
	ReasonNoManagedClusterSetBindings = "NoManagedClusterSetBindings"
	// ReasonNoIntersection goes with PlacementSatisfied False.
	ReasonNoIntersection = "NoIntersection"
	// ReasonAllManagedClusterSetsEmpty goes with PlacementSatisfied False.
	ReasonAllManagedClusterSetsEmpty = "AllManagedClusterSetsEmpty"
	// ReasonNoManagedClusterMatched goes with PlacementSatisfied False.
	ReasonNoManagedClusterMatched = "NoManagedClusterMatched"
	// ReasonNotAllDecisionsScheduled goes with PlacementSatisfied False.
	ReasonNotAllDecisionsScheduled = "NotAllDecisionsScheduled"

	// ConditionMisconfigured is True when the spec cannot be followed.
	ConditionMisconfigured = "PlacementMisconfigured"
	// ReasonMisconfigured goes with PlacementMisconfigured True.
	ReasonMisconfigured = "Misconfigured"
	// ReasonSucceedconfigured goes with PlacementMisconfigured False. It is spelled this
	// way on the wire.
	ReasonSucceedconfigured = "Succeedconfigured"
)
