// SPDX-License-Identifier: Apache-2.0

// Package reconcile tests the framework of the control loops, pkg/reconcile and
// pkg/reconcile/watch, against a real kube-apiserver: what is sent, in which order, and
// what a second pass sends.
package reconcile
