// SPDX-License-Identifier: Apache-2.0

// Package path parses the three notations in which works select fields of an object, and
// evaluates them at a bounded cost.
//
// All of them are parsed into one small tree of steps, which one evaluator walks:
//
//	JSONPath      .spec.replicas  {.spec.items[*].size}  ['a','b']  [0]  [-1]
//	              [1:3]  ..name  [?(@.name=="web")]  .annotations.a\.b
//	JSON pointer  RFC 6901; what is not there is passed over
//	jq            as far as it names fields: .a.b  .["a"]  .[0]  .[]  ..
//	              a | b  a, b  a?  a // b  select(...) with comparisons,
//	              and, or, not, and the functions of the table in call.go
//
// client-go parses the brackets of a JSONPath. There are two ways to read one: Kubectl
// behaves as kubectl does, which fails on a mismatch and compares only values of the same
// kind; JSONPath is for paths that select fields to ignore: it skips what does not exist
// and accepts any quoted text as a name, including dots.
//
// A jq program can do anything, run for ever and exhaust memory; of jq, this package
// supports only what selects fields. Everything else (variables, definitions, arithmetic,
// string building, reduce, input, env, modules) is rejected by name when it is parsed.
// docs/adr/0005-jq-parser.md explains why it has its own parser.
//
// Every result is a part of the object or a literal of the expression, so both bound the
// memory. Every step is reported to the caller, which ends an evaluation that costs too
// much. No error contains values of an object.
package path
