// SPDX-License-Identifier: Apache-2.0

// Package watch keeps local copies of API collections with as little memory as
// can be: a reflector over the dynamic client that lists in pages, watches from
// there, and stores only what a transform keeps of each object.
//
// It is the driver of control loops in ocm-agent and in the agents of add-ons: a
// Collection tells a reconcile.Queue which keys changed. It reads only; it never writes.
package watch
