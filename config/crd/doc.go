// SPDX-License-Identifier: Apache-2.0

// Package crd holds the CustomResourceDefinitions of this project, as they were
// generated from the Go types in pkg/apis, and hands them out.
//
// It owns the YAML files beside it (generated, never edited by hand), the order
// in which the hub applies its definitions, and the conversion stanza of the two
// add-on definitions whose versions differ. It reads nothing but those files,
// which are part of the program, and writes nothing: callers apply what they
// get. The definition of ClusterProfiles is a third party's in the form that the hub
// needs; the hub creates it where it is missing and never changes one.
package crd
