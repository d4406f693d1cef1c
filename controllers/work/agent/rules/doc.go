// SPDX-License-Identifier: Apache-2.0

// Package rules makes conditions of a live object by the condition rules of its
// ManifestWork.
//
// It is pure, but for the clock that tells how long a round takes. A rule is built
// in (Complete of a Job and of a Pod) or holds CEL expressions over the variable
// object, which internal/cel evaluates at a bounded cost. A rule that is built in for
// other kinds only makes no condition. A rule that is wrong makes one that says
// what is wrong; nothing else suffers.
//
// All manifests of a work share what one pass may spend on expressions (Round):
// what is over it is put off. Its condition stays as it was, or says that it was
// not evaluated where there is none; the caller lets who waits longest go first.
//
// Reads and writes: nothing.
package rules
