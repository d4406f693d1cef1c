// SPDX-License-Identifier: Apache-2.0

// Package progress gives the configurations of an add-on to its clusters, one after
// the other as the rollout strategy of each placement says, and tells how far they
// came. Which clusters may have theirs now is decided by internal/rollout.
//
// Events on the add-on tell when a rollout of other configurations begins, is stuck,
// goes on by somebody's word and ends.
//
// It owns status.defaultConfigReferences and status.installProgressions of
// ClusterManagementAddOns, and of ManagedClusterAddOns status.configReferences and
// the conditions Configured and Progressing. Of an add-on that the hub does not
// manage it writes the default references alone. Hashes of configurations that the
// hub does not know are those of the add-on's controller.
//
// Other than in the API's own implementation: a placement that is missing holds up
// its own clusters only; a cluster that is stuck before its manifests are applied
// runs out of time too; one that is being deleted, or left out of the add-on, holds
// up nobody; works on the managed and on the hosting cluster count alike; messages
// name what is missing. A rollout that has stopped because too many clusters are out
// of time goes on without them when an annotation of the add-on asks for it; the
// moment of the request is noted in the progression.
package progress
