// SPDX-License-Identifier: Apache-2.0

// Package fleet is the library behind the kubectl plugin. This package holds what all jobs
// share: a connection to a cluster, a running operation with its deadline and steps, the
// changes it made, and errors that a user can act on. The jobs are the packages below: hub,
// join, accept, unjoin, cluster, clusterset, placement, work, trace, addon, token and check.
// They build on smaller packages with one topic each: write, manifest, naming, trust, request,
// member, workload, retire and gate. Package teardown removes what was installed; the processes use it
// too. No package imports in the other direction.
//
// Every job is a function with an options struct, a typed result and progress reported by a
// callback; nothing here depends on a terminal, a flag or the user's files. What helps with a
// failure is a code with values (Remedy), which the program puts into words. The library reads
// and writes hub and managed cluster through dynamic clients with the caller's rights. Writes
// are server-side apply with field manager kubectl-ocm and can be repeated: what is already as
// wanted is reported as unchanged. In a dry run no request is sent that could change anything.
// Waits are lists and watches that resume (package await), under one deadline for the
// operation.
//
// The API is public, with the packages below: what is exported keeps its meaning within a
// minor version.
package fleet
