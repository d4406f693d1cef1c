// SPDX-License-Identifier: Apache-2.0

// Package packed holds objects of the API in little space, for those who keep
// thousands of them and read few at a time: each in one string, field by field in
// the order of its Go type, without names. What is empty takes one byte, what many
// objects say one or two, a UID 17. Types that write their own JSON, such as
// quantities, are packed as that.
//
// Of metadata version, UID, generation, times, labels, annotations and finalizers
// are kept; kind and names belong to whoever keeps the object, the rest is
// dropped. Times have whole seconds, as in the API. To pack or to unpack an object
// takes some microseconds. Strings of an unpacked object may share the memory of
// what it was packed in: who keeps one of them for longer, clones it.
package packed
