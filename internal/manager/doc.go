// SPDX-License-Identifier: Apache-2.0

// Package manager drives the control loops of ocm-hub: it keeps one watch a kind
// for the whole process, by a reflector, tells the loops' queues what changed, and
// runs the loops. Kinds of which there are many are packed, one string an object;
// all others are kept as they are.
//
// What it keeps of objects is trimmed on the way in: managedFields and the
// configuration that kubectl apply leaves behind are dropped; of kinds that are
// only counted or compared, metadata alone is kept.
//
// A kind that the API server does not serve is waited for; it never ends the
// process. A Manager runs once; to run loops again, make a new one. It reads
// only: writes go through pkg/reconcile. It elects no leader and serves no
// port.
package manager
