// SPDX-License-Identifier: Apache-2.0

// Package watch keeps local copies of API collections with as little memory as possible: a
// reflector over the dynamic client lists in pages, watches from there, and stores only
// what a transform keeps of each object.
//
// It drives the control loops of ocm-agent and of add-on agents: a Collection tells a
// reconcile.Queue which keys changed. It never writes.
package watch
