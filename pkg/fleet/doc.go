// SPDX-License-Identifier: Apache-2.0

// Package fleet is the library behind the plugin of kubectl, and of that library
// what all jobs share: a connection to a cluster, an operation under way with its
// deadline and its steps, what it changed, and errors that a person can act on.
// The jobs are the packages below: hub, join, accept, unjoin, cluster,
// clusterset, placement, work, trace, addon, token and check. They stand on
// smaller ones that know one thing each: write, manifest, naming, trust,
// request, member, workload and gate. What was installed is taken away by
// teardown, which the processes use too. Nothing imports the other way round.
//
// Every job is a function with an options struct, a typed result, and progress by
// a callback; nothing here knows a terminal, a flag or a file of the user's. What
// helps with a failure is a code with values (Remedy), for the program to word. The
// library reads and writes hub and managed cluster through dynamic clients with the
// caller's rights. Writes are server-side apply with field manager kubectl-ocm
// and can be repeated: what is already as wanted is reported as unchanged. In a
// dry run nothing is sent that could change anything. Waits are lists and watches
// that resume (package await), under one deadline for the operation.
//
// Public, with the packages below: what is exported keeps its meaning within a minor
// version.
package fleet
