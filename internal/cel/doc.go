// SPDX-License-Identifier: Apache-2.0

// Package cel evaluates untrusted expressions of the Common Expression Language at a
// bounded cost.
//
// An Environment is what expressions may use: CEL with optional types, the string
// extension, and the Kubernetes libraries for lists, regular expressions, URLs,
// quantities, IP addresses, CIDRs, formats and semantic versions. The caller adds its own
// variables and functions. An environment is built when its first expression is compiled,
// so a process that compiles none pays nothing.
//
// The cost of an expression has four bounds, because CEL knows the cost of a step only
// after it: the length of the expression; the cost that CEL counts, for one expression
// and for all that share a Budget; the size of each list, map and string that an
// expression builds; and the context, which is checked every hundred steps of a loop.
//
// The package has no side effects.
package cel
