// SPDX-License-Identifier: Apache-2.0

// Package gc removes the contents of the namespace of a ManagedCluster that is being deleted:
// first its ManagedClusterAddOns, then its ManifestWorks, within each those with the lowest
// cleanup priority first, and the next only when these are gone. Then it drops the cluster's
// finalizer.
//
// It owns the finalizer resource-cleanup (gate ResourceCleanup, on by default) and the
// condition Deleting. What a cluster whose finalizers were stripped leaves behind is removed
// in the same order. It never deletes a namespace. A hub can be configured to remove other
// resources, in another order.
package gc
