// SPDX-License-Identifier: Apache-2.0

// Package feedback reads the values that a ManifestWork wants to know of an
// applied object.
//
// Evaluate takes the live object and the feedback rules that concern it, and
// gives values for the status of the work and an error that says which of them
// could not be read. It is pure.
//
// Paths are those of kubectl without the braces, as the package path has them.
// Whoever may write works writes them, so every step counts towards a bound, and
// no path can hold up the agent or fill its memory; what a map holds is taken in
// the order of its keys, so that the same object always gives the same values;
// and no error quotes what an object holds.
//
// A work that asks for a value of a Secret gets it, because it names the path
// itself, and because the status can be read by whoever may read the work, this
// has to be somebody's wish. Of a Secret only single values are given, one for
// each path: never a map, a list, or several matches.
package feedback
