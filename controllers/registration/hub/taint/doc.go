// SPDX-License-Identifier: Apache-2.0

// Package taint keeps two taints of every ManagedCluster, accepted or not, in sync with its
// condition ManagedClusterConditionAvailable: unreachable while the condition is missing or
// Unknown, unavailable while it is False, neither while it is True.
//
// It owns only these two taints and leaves users' taints alone. Admission adds the first one
// at creation, so that a new cluster causes no write here.
package taint
