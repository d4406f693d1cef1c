// SPDX-License-Identifier: Apache-2.0

// Package path reads the three notations in which works name places of an
// object, and evaluates them at a bounded cost.
//
// All of them become one small tree of steps, which one evaluator walks:
//
//	JSONPath      .spec.replicas  {.spec.items[*].size}  ['a','b']  [0]  [-1]
//	              [1:3]  ..name  [?(@.name=="web")]  .annotations.a\.b
//	JSON pointer  RFC 6901; what is not there is passed over
//	jq            as far as it names fields: .a.b  .["a"]  .[0]  .[]  ..
//	              a | b  a, b  a?  a // b  select(...) with comparisons,
//	              and, or, not, and the functions of the table in call.go
//
// Brackets of a JSONPath are parsed by client-go. There are two ways to read
// one: Kubectl as kubectl does, which fails on what does not fit and
// compares only what is alike; JSONPath for paths that select what to leave
// alone, which passes over what is not there and takes any text in quotes for
// a name, dots and all.
//
// A jq program may do anything, run for ever and fill the memory; of jq, this
// package knows only what leads to fields. Everything else (variables,
// definitions, arithmetic, string building, reduce, input, env, modules) is
// refused by name when it is read. Why it has its own parser is told in
// docs/adr/0005-jq-parser.md.
//
// What an expression gives lies in the object or stands in the expression, so
// memory is bounded by both; every step is told to the caller, who ends an
// evaluation that costs too much. No error shows values of an object.
package path
