// SPDX-License-Identifier: Apache-2.0

// Command managed-serviceaccount is the agent of the add-on of that name. On each cluster with
// the add-on one process creates the ServiceAccounts that the hub asks for, and writes their
// tokens to the hub.
//
// It is a program of its own, beside ocm-agent: it may read and write Secrets of the hub and
// mint tokens of the cluster, which the agent of every cluster should not be able to do, and it
// runs only where the add-on is enabled.
package main
