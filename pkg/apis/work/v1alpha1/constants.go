// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Finalizer and labels. Contract: work.md, section 1.4.
const (
	// FinalizerManifestWorkReplicaSet keeps a ManifestWorkReplicaSet until its
	// ManifestWorks are told to go.
	FinalizerManifestWorkReplicaSet = "work.open-cluster-management.io/manifest-work-cleanup"
	// LabelManifestWorkReplicaSet on a ManifestWork holds namespace.name of the
	// ManifestWorkReplicaSet that made it.
	LabelManifestWorkReplicaSet = "work.open-cluster-management.io/manifestworkreplicaset"
	// LabelPlacementName on a ManifestWork holds the name of the placement that
	// selected its cluster.
	LabelPlacementName = "work.open-cluster-management.io/placementname"
)

// Conditions with their reasons. Contract: work.md, section 13.2.
const (
	// ConditionPlacementVerified is True when the placements were found and
	// selected clusters.
	ConditionPlacementVerified = "PlacementVerified"
	// ConditionPlacementRolledOut is True when every selected cluster succeeded.
	ConditionPlacementRolledOut = "PlacementRolledOut"
	// ConditionManifestworkApplied is True when every ManifestWork is available.
	// It is spelt so on the wire.
	ConditionManifestworkApplied = "ManifestworkApplied"

	// ReasonAsExpected goes with PlacementVerified and ManifestworkApplied True.
	ReasonAsExpected = "AsExpected"
	// ReasonNotAsExpected goes with PlacementVerified and ManifestworkApplied
	// False.
	ReasonNotAsExpected = "NotAsExpected"
	// ReasonPlacementDecisionEmpty goes with PlacementVerified and
	// ManifestworkApplied False: no cluster is selected.
	ReasonPlacementDecisionEmpty = "PlacementDecisionEmpty"
	// ReasonPlacementDecisionNotFound goes with PlacementVerified False: there is
	// no such placement.
	ReasonPlacementDecisionNotFound = "PlacementDecisionNotFound"
	// ReasonProcessing goes with ManifestworkApplied False.
	ReasonProcessing = "Processing"
	// ReasonInvalidManifestWorkName goes with ManifestworkApplied False: namespace
	// and name are too long together.
	ReasonInvalidManifestWorkName = "InvalidManifestWorkName"
	// ReasonComplete goes with PlacementRolledOut True.
	ReasonComplete = "Complete"
	// ReasonProgressing goes with PlacementRolledOut False.
	ReasonProgressing = "Progressing"
)
