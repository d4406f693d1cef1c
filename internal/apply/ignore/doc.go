// SPDX-License-Identifier: Apache-2.0

// Package ignore finds the fields of an object that a work does not want to apply
// (ignoreFields of server-side apply), and builds the object that is applied instead.
//
// Parse reads the expressions once, in the three notations of package path: jsonPaths,
// jsonPointers and jqPathExpressions. What they select of an object becomes one tree of
// paths. Every step of an evaluation is counted, and so is the work on what was found.
//
// Apply is pure: it builds the object to apply from the declared object, the live object
// and its managed fields. An ignored field is left out where our manager does not own it.
// Where it does, the live value is sent, because server-side apply removes a field that
// its owner leaves out. Below a list or object that the API server merges as one value,
// the live value is sent too. Applying the result therefore never changes an ignored
// field, and never takes one over.
package ignore
