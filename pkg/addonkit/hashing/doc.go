// SPDX-License-Identifier: Apache-2.0

// Package hashing says which content the configurations of an add-on have, where the hub
// does not read them itself: all kinds but AddOnDeploymentConfig and AddOnTemplate. Without
// these hashes a rollout of such a configuration never ends.
//
// It is pure: package runner watches the objects and writes what is decided here, into
// the status of the ClusterManagementAddOn and of its instances. The hub copies the former
// to the instances by its rollout.
package hashing
