// SPDX-License-Identifier: Apache-2.0

// Package ignore finds the fields of an object that a work does not want to
// apply (ignoreFields of server-side apply), and makes the object that is
// applied instead.
//
// Parse reads the expressions once, in the three notations of the package path:
// jsonPaths, jsonPointers and jqPathExpressions. What they select of an object
// becomes one tree of places; every step towards it is counted, and so is the
// work on what was found.
//
// Apply is pure: from the declared object, the live object and its managed
// fields it makes the object to apply. An ignored field is left out where our
// manager does not own it. Where it does, the live value is sent, because
// server-side apply removes what its owner leaves out. Below a list or object
// that the API server merges as one value, the live value is sent too. So an
// apply of the result never changes an ignored field, and never takes one over.
package ignore
