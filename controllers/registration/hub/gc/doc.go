// SPDX-License-Identifier: Apache-2.0

// Package gc removes what is in the namespace of a ManagedCluster that is being
// deleted: first its ManagedClusterAddOns, then its ManifestWorks, of each the
// ones with the lowest cleanup priority first, and the next only when these are
// gone. Then it lets the cluster go.
//
// It owns the finalizer resource-cleanup (gate ResourceCleanup, on by default)
// and the condition Deleting. What a cluster leaves behind whose finalizers were
// stripped is removed in the same order. It never deletes a namespace. A hub can
// be told to remove other resources, in another order.
package gc
