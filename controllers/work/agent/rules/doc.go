// SPDX-License-Identifier: Apache-2.0

// Package rules evaluates the condition rules of a ManifestWork against live objects.
//
// It is pure, except for the clock that times a round. A rule is either built in
// (Complete of a Job and of a Pod) or holds CEL expressions over the variable object,
// which internal/cel evaluates at a bounded cost. A built-in rule for a kind that it does
// not cover makes no condition. An invalid rule makes a condition that names the fault;
// nothing else is affected.
//
// All manifests of a work share one budget for expressions in a pass (Round); what
// exceeds it is put off. The condition of a rule that was put off stays as it was, or
// says that the rule was not evaluated if there is none; the caller lets the manifests
// that have waited longest go first.
//
// Reads and writes: nothing.
package rules
