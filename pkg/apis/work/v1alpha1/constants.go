// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "fmt"

// Finalizer and labels.
const (
	// FinalizerManifestWorkReplicaSet keeps a ManifestWorkReplicaSet until its
	// ManifestWorks are marked for deletion.
	FinalizerManifestWorkReplicaSet = "work.open-cluster-management.io/manifest-work-cleanup"
	// LabelManifestWorkReplicaSet on a ManifestWork holds namespace.name of the
	// ManifestWorkReplicaSet that created it.
	LabelManifestWorkReplicaSet = "work.open-cluster-management.io/manifestworkreplicaset"
	// LabelPlacementName on a ManifestWork holds the name of the placement that
	// selected its cluster.
	LabelPlacementName = "work.open-cluster-management.io/placementname"
	// AnnotationConfirmRemoval on a ManifestWorkReplicaSet holds the number of
	// ManifestWorks that may be removed at once. It is removed afterwards.
	AnnotationConfirmRemoval = "work.open-cluster-management.io/confirm-removal"
)

// Conditions with their reasons.
const (
	// ConditionPlacementVerified is True when the placements were found and
	// selected clusters.
	ConditionPlacementVerified = "PlacementVerified"
	// ConditionPlacementRolledOut is True when every selected cluster succeeded.
	ConditionPlacementRolledOut = "PlacementRolledOut"
	// ConditionManifestworkApplied is True when every ManifestWork is available. It is
	// spelled this way on the wire.
	ConditionManifestworkApplied = "ManifestworkApplied"
	// ConditionRemovalHeld is True while ManifestWorks of clusters that are no longer
	// selected stay until a user confirms their removal, and absent otherwise.
	ConditionRemovalHeld = "RemovalHeld"

	// ReasonPlacementShrank goes with RemovalHeld True: a placement lost most of
	// its clusters at once.
	ReasonPlacementShrank = "PlacementShrank"
	// ReasonAsExpected goes with PlacementVerified and ManifestworkApplied True.
	ReasonAsExpected = "AsExpected"
	// ReasonNotAsExpected goes with PlacementVerified and ManifestworkApplied
	// False.
	ReasonNotAsExpected = "NotAsExpected"
	// ReasonPlacementDecisionEmpty goes with PlacementVerified and
	// ManifestworkApplied False: no cluster is selected.
	ReasonPlacementDecisionEmpty = "PlacementDecisionEmpty"
	// ReasonPlacementDecisionNotFound goes with PlacementVerified False: the placement does
	// not exist.
	ReasonPlacementDecisionNotFound = "PlacementDecisionNotFound"
	// ReasonProcessing goes with ManifestworkApplied False.
	ReasonProcessing = "Processing"
	// ReasonInvalidManifestWorkName goes with ManifestworkApplied False: namespace and name
	// together are too long.
	ReasonInvalidManifestWorkName = "InvalidManifestWorkName"
	// ReasonComplete goes with PlacementRolledOut True.
	ReasonComplete = "Complete"
	// ReasonProgressing goes with PlacementRolledOut False.
	ReasonProgressing = "Progressing"
)

// messageRolledOut begins the message of PlacementRolledOut.
const messageRolledOut = "%d of %d clusters succeeded"

// MessageRolledOut is how the message of PlacementRolledOut begins: how many of the
// selected clusters succeeded with the current template. The fields for that in the summary
// stay unset on the wire.
func MessageRolledOut(succeeded, selected int) string {
	return fmt.Sprintf(messageRolledOut, succeeded, selected)
}

// RolledOut reads that message; it returns zeros if the hub does not report it.
func (s *ManifestWorkReplicaSetStatus) RolledOut() (succeeded, selected int) {
	for _, c := range s.Conditions {
		if c.Type != ConditionPlacementRolledOut {
			continue
		}
		if n, err := fmt.Sscanf(c.Message, messageRolledOut, &succeeded, &selected); err != nil || n != 2 {
			return 0, 0
		}
	}
	return succeeded, selected
}

// messageTurns follows messageRolledOut in the message of PlacementRolledOut.
const messageTurns = ", %d wait for their turn, %d are out of time"

// MessageTurns is how that message goes on: how many of the selected clusters did not get the
// current template yet, and how many did not succeed with it in time.
func MessageTurns(waiting, late int) string { return fmt.Sprintf(messageTurns, waiting, late) }

// Turns reads that part of the message; it returns zeros if the hub does not report it.
func (s *ManifestWorkReplicaSetStatus) Turns() (waiting, late int) {
	for _, c := range s.Conditions {
		var succeeded, selected int
		if c.Type != ConditionPlacementRolledOut {
			continue
		}
		if n, err := fmt.Sscanf(c.Message, messageRolledOut+messageTurns, &succeeded, &selected, &waiting, &late); err != nil || n != 4 {
			return 0, 0
		}
	}
	return waiting, late
}
