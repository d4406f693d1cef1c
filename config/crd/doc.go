// SPDX-License-Identifier: Apache-2.0

// Package crd embeds the CustomResourceDefinitions of this project, which are generated
// from the Go types in pkg/apis, and returns them.
//
// It owns the YAML files beside it (generated, never edited by hand), the order in which
// the hub applies its definitions, and the conversion stanza of the two add-on definitions
// whose versions differ. It reads only those embedded files and writes nothing: callers
// apply what they get. The definition of ClusterProfiles is a third party's, in the form
// that the hub needs; the hub creates it if it is missing and never changes it. That of ClusterPermissions is applied with its gate only.
package crd
