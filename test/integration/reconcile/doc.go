// SPDX-License-Identifier: Apache-2.0

// Package reconcile tests the frame of the control loops, pkg/reconcile and
// pkg/reconcile/watch, against a real kube-apiserver: what reaches the wire, in
// which order, and what a second pass sends.
package reconcile
