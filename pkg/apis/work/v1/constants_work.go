// SPDX-License-Identifier: Apache-2.0

package v1

// Resources of the group as they appear in request paths.
const (
	// ResourceManifestWorks is the plural of ManifestWork.
	ResourceManifestWorks = "manifestworks"
	// ResourceAppliedManifestWorks is the plural of AppliedManifestWork.
	ResourceAppliedManifestWorks = "appliedmanifestworks"
)

// Condition Deleting of a ManifestWork.
const (
	// ReasonWorkDeleting goes with Deleting True.
	ReasonWorkDeleting = "WorkDeleting"
	// MessageWorkDeleting goes with Deleting True.
	MessageWorkDeleting = "ManifestWork is being deleted"
)
