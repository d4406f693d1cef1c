// SPDX-License-Identifier: Apache-2.0

// Package cel evaluates expressions of the Common Expression Language that
// others wrote, at a bounded cost.
//
// An Environment is what expressions may use: CEL with optional types, the
// string extension, and Kubernetes' libraries for lists, regular expressions,
// URLs, quantities, IP addresses, CIDRs, formats and semantic versions. The
// caller adds variables and functions of its own. It is made when the first
// expression is compiled, and a process that never compiles one pays nothing.
//
// What an expression may cost is bounded four times over, because the cost that
// CEL counts is known only after each step: by the expression's length; by what
// CEL counts for one expression and for all that share a Budget; by the size of
// each list, map and string that an expression builds; and by the context,
// which is looked at every hundred steps of a loop.
//
// Reads and writes: nothing.
package cel
