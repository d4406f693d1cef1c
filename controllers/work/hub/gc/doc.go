// SPDX-License-Identifier: Apache-2.0

// Package gc deletes ManifestWorks that have been Complete for as long as their
// spec.deleteOption.ttlSecondsAfterFinished says (gate
// CleanUpCompletedManifestWork). It reads ManifestWorks by a watch of its own
// that remembers only those that are complete and have a time to live, some 100
// bytes each; it deletes them, and records an Event for each. Without the gate
// there is no watch.
//
// ManifestWorks of a replica set stay, it would only make them again. So does one
// whose Complete is of an older generation: what was edited has not run yet. A
// deletion holds for the very version that was judged.
package gc
