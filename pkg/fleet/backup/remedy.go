// SPDX-License-Identifier: Apache-2.0

package backup

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for restoring a hub.
const (
	// CleanOrMerge removes the hub that is there, or adds to it what is missing.
	CleanOrMerge fleet.RemedyCode = "backup.CleanOrMerge"
	// FinishFirst finishes the restore of another backup.
	FinishFirst fleet.RemedyCode = "backup.FinishFirst"
	// InitFirst turns the cluster into a hub.
	InitFirst fleet.RemedyCode = "backup.InitFirst"
	// JoinOrRelease joins clusters that do not return, or goes on without them.
	JoinOrRelease fleet.RemedyCode = "backup.JoinOrRelease"
	// OpenGates turns the feature gates on whose kinds the backup has.
	OpenGates fleet.RemedyCode = "backup.OpenGates"
	// UpgradeHub upgrades the hub.
	UpgradeHub fleet.RemedyCode = "backup.UpgradeHub"
)
