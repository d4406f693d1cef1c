// SPDX-License-Identifier: Apache-2.0

// Package caller is who a request through a tunnel acts for: what the hub sends to the agent, and
// what the agent makes of it.
//
// Names that begin with system: mean something else on every cluster, so the hub puts a prefix
// before them, and the agent refuses those without. Rights of the hub end on the hub:
// system:masters is left out. Nobody is carried without a name: a managed cluster would take an
// anonymous user of the hub for an authenticated one.
//
// Who acts as a ManagedServiceAccount is carried as the name of that account and nothing else. It
// is no user name, so no prefix or rule about those can turn one into the other; what the account
// is on the cluster, and whether it may be acted for, is the agent's to say.
//
// It does no I/O.
package caller
