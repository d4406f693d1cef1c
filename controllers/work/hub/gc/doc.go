// SPDX-License-Identifier: Apache-2.0

// Package gc deletes ManifestWorks that have been Complete for as long as
// spec.deleteOption.ttlSecondsAfterFinished says (feature gate
// CleanUpCompletedManifestWork). It has its own watch of ManifestWorks, which remembers
// only those that are complete and have a time to live, some 100 bytes each. It records
// an Event for each deletion. Without the gate there is no watch.
//
// ManifestWorks of a replica set are kept, because the replica set would only create them
// again. So are works whose condition Complete is of an older generation: the edited spec
// has not run yet. Each deletion is conditional on the version that was checked.
package gc
