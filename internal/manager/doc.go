// SPDX-License-Identifier: Apache-2.0

// Package manager runs the control loops of ocm-hub: it keeps one watch for each kind in
// the whole process, by a reflector, and adds the keys of changed objects to the loops'
// queues. Kinds with many objects are packed, one string an object; all others are kept
// unchanged.
//
// Objects are trimmed before they are kept: managedFields and the configuration that
// kubectl apply leaves behind are dropped; of kinds that are only counted or compared,
// only metadata is kept.
//
// It waits for a kind that the API server does not serve; such a kind never ends the
// process. A Manager runs once; to run loops again, create a new one. It only reads:
// writes go through pkg/reconcile. It elects no leader and serves no port.
package manager
