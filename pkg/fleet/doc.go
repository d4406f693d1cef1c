// SPDX-License-Identifier: Apache-2.0

// Package fleet is the library behind "kubectl ocm": making a cluster a hub,
// joining clusters to it, accepting, grouping and removing them, sending work,
// bringing add-ons, and finding what is wrong. Every operation is one function with an options struct, a typed result, and
// progress by a callback; nothing here knows a terminal, a flag or a file of
// the user's.
//
// It reads and writes hub and managed cluster through dynamic clients with the
// caller's rights. Writes are server-side apply with field manager kubectl-ocm
// and can be repeated: what is already as wanted is reported as unchanged. In a
// dry run nothing is sent that could change anything. Waits are lists and
// watches that resume (package await), under one deadline for the operation.
//
// Errors that a person has to act on are *Error: what, why, and the command
// that helps. The removal of what the operators left is in fleet/teardown; the
// objects that are installed come from config/hub and config/agent. Contracts:
// contract/registration.md, contract/operator.md, contract/cli.md.
package fleet
