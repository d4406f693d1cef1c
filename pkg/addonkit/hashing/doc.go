// SPDX-License-Identifier: Apache-2.0

// Package hashing decides the content hashes of an add-on's configurations that the hub
// does not read itself: all kinds but AddOnDeploymentConfig and AddOnTemplate. Without
// these hashes a rollout of such a configuration never ends.
//
// It is pure: package runner watches the objects and writes the result to the status of the
// ClusterManagementAddOn and of its instances. The hub's rollout copies the hashes of the
// ClusterManagementAddOn to the instances.
package hashing
