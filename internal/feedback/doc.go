// SPDX-License-Identifier: Apache-2.0

// Package feedback reads the values of an applied object that a ManifestWork asks for.
//
// Evaluate takes the live object and its feedback rules, and returns values for the
// status of the work and an error that names the values that could not be read. It is
// pure.
//
// Paths are those of kubectl without the braces, as package path reads them. Anyone who
// may write works can write them, so every step counts towards a bound, and no path can
// block the agent or exhaust its memory. Maps are traversed in the order of their keys,
// so the same object always gives the same values. No error quotes the content of an
// object.
//
// A work that asks for a value of a Secret gets it, because it names the path itself.
// Since everyone who may read the work can read its status, exposing a Secret takes an
// explicit request: of a Secret each path gives only a single value, never a map, a list,
// or several matches.
package feedback
