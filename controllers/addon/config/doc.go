// SPDX-License-Identifier: Apache-2.0

// Package config resolves which configurations an add-on has on a cluster, and the hashes
// that identify their content.
//
// There are three sources, strongest first: the cluster's ManagedClusterAddOn, the placement
// that installs the add-on there, and the defaults of the ClusterManagementAddOn. The
// strongest source that names a kind of configuration supplies the whole list of that kind.
// References are converted to the form of the statuses and compared with them.
//
// All functions are pure. Only Contents watches: the two kinds of configuration that the hub
// itself knows, with a hash of each object. Hashes of other kinds are set by the controller
// of the add-on, and this package leaves them as they are.
package config
