// SPDX-License-Identifier: Apache-2.0

// Package ignore finds the fields of an object that a work does not want to
// apply (ignoreFields of server-side apply), and makes the object that is
// applied instead.
//
// Parse reads the three notations once. All of them become one small tree of
// steps, so that one evaluator, with one bound on its cost, serves all:
//
//	jsonPaths          .spec.replicas  {.spec.items[*].size}  ['a','b']  [0]  [-1]
//	                   [1:3]  ..name  [?(@.name=="web")]  .annotations.a\.b
//	jsonPointers       RFC 6901; what is not there is passed over
//	jqPathExpressions  jq as far as it names fields: .a.b  .["a"]  .[0]  .[]  ..
//	                   a | b  a, b  a?  a // b  select(...) with comparisons,
//	                   and, or, not, and the functions of the table in call.go
//
// A jq program may do anything, run for ever and fill the memory; of jq, this
// package knows only what leads to fields. Everything else (variables,
// definitions, arithmetic, string building, reduce, input, env, modules) is
// refused when the work is read, by name. What is left cannot make a value
// that is not in the object or the expression, so memory is bounded by the
// object, and every step is counted.
//
// Apply is pure: from the declared object, the live object and its managed
// fields it makes the object to apply. An ignored field is left out where our
// manager does not own it. Where it does, the live value is sent, because
// server-side apply removes what its owner leaves out. Below a list or object
// that the API server merges as one value, the live value is sent too. So an
// apply of the result never changes an ignored field, and never takes one over.
//
// Contract: work.md section 5.4, done as section 19 item 10 asks.
package ignore
