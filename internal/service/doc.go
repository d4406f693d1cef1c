// SPDX-License-Identifier: Apache-2.0

// Package service is which Service of a managed cluster a request through the tunnel is for, and
// whether the agent may send it there: what the hub names, the list that the managed cluster holds,
// and the addresses that are never dialled.
//
// Nothing is exposed that the list does not name. A request for a Service carries no identity, so an
// agent that does not know such requests refuses them.
//
// It does no I/O.
package service
