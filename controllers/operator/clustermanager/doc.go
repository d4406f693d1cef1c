// SPDX-License-Identifier: Apache-2.0

// Package clustermanager makes of the ClusterManager what it says, in the
// compact layout: certificates, the APIs of the hub, its admission, and then the
// control loops in the same process; and takes all that away again when the
// ClusterManager is deleted.
//
// One pass goes as far as it can: certificates, APIs, until they are
// established, admission, once this process serves it, loops. What it waits for
// is in the conditions of the ClusterManager, never only in a log. It does not
// start beside a running hub of the split layout. Changes of feature gates
// restart the loops, not the process.
//
// It owns the Secrets and the ConfigMap of the webhooks' certificates, the twelve
// CustomResourceDefinitions of the hub, the six webhook configurations, and the conditions
// and the finalizer of the ClusterManager. Of what the installer applies (config/hub) it
// puts back its Services, the namespace of the certificates with its own rights there, and
// the account of the add-on manager, as far as its rights reach; the rest it leaves alone.
//
// When the hub is removed, admission goes first and certificates last.
package clustermanager
