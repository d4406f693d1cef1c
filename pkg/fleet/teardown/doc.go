// SPDX-License-Identifier: Apache-2.0

// Package teardown removes a hub or an agent from a cluster: the same code serves the
// processes that remove themselves because their ClusterManager or Klusterlet is being
// deleted, and the plugin, when no process is left to do it.
//
// Objects are found by the labels that the installation set
// (open-cluster-management.io/created-by-clustermanager and created-by-klusterlet), deleted
// only as the very object that was seen, and in an order that can be resumed after any write.
// What another owner needs too loses our label and stays.
//
// It does not ask for confirmation and depends on no terminal; the plugin decides whether
// something may be removed.
package teardown
