// SPDX-License-Identifier: Apache-2.0

// Package lab runs a fleet on this machine: a hub and managed clusters, each a playground
// with a process node, with the hub and the agents of this project running in them as pods.
//
// It owns one folder for each lab, below a root that the caller names: the folders of the
// clusters, and lab.json, which is written before anything starts. With that folder
// everything of a lab can be mended or removed, also after a crash. It further owns the
// entries ocm-NAME-CLUSTER of the user's kubeconfig files: each carries an extension with the
// path of the lab's folder, and entries of these names without it belong to somebody else and
// are neither changed nor removed.
//
// One process at a time works on a lab; its folder is the lock.
package lab
