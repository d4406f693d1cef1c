// SPDX-License-Identifier: Apache-2.0

// Package teardown removes a hub or an agent from a cluster: the same code for
// the processes that remove themselves because their ClusterManager or
// Klusterlet is being deleted, and for the plugin, when no process is left to
// do it.
//
// Everything is found by the labels that installing put on it
// (open-cluster-management.io/created-by-clustermanager and
// created-by-klusterlet), deleted only as the very object that was seen, and in
// an order that can be taken up again after any write. What another owner
// needs too loses our label and stays.
//
// It asks nobody and knows no terminal; the plugin decides whether something
// may be removed.
package teardown
