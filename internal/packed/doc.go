// SPDX-License-Identifier: Apache-2.0

// Package packed keeps API objects in little memory, for callers that keep thousands of
// them and read few at a time: each in one string, field by field in the order of its Go
// type, without names. An empty value takes one byte, a value that many objects share one
// or two, a UID 17. Types with their own JSON encoding, such as quantities, are packed as
// JSON.
//
// Of metadata, version, UID, generation, times, labels, annotations and finalizers are
// kept; kind and names are the caller's to keep, and the rest is dropped. Times have
// whole seconds, as in the API. Packing or unpacking an object takes some microseconds.
// Strings of an unpacked object may share the memory of the packed one: clone a string
// before keeping it for longer.
package packed
