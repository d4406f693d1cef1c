// SPDX-License-Identifier: Apache-2.0

// Package config says which configurations an add-on has on a cluster, and by
// which hash their content is known.
//
// There are three sources: the cluster's ManagedClusterAddOn, the placement that
// brings the add-on there, and the defaults of the ClusterManagementAddOn. The
// strongest source that names a kind of configuration gives the whole list of that
// kind. References are turned into what statuses hold, and compared with it.
//
// All of it is pure but Contents, which watches the two kinds of configuration
// that the hub itself knows, and keeps a hash of each object. Hashes of other kinds
// are filled in by the controller of the add-on, and are left as they are here.
package config
