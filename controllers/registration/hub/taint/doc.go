// SPDX-License-Identifier: Apache-2.0

// Package taint keeps two taints of every ManagedCluster, accepted or not, in
// step with its condition ManagedClusterConditionAvailable: unreachable while
// the condition is missing or Unknown, unavailable while it is False, neither
// while it is True.
//
// It owns these two taints only; those of users are left alone. Admission puts
// the first one on at creation, so that a new cluster costs no write here.
package taint
