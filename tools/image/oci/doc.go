// SPDX-License-Identifier: Apache-2.0

// Package oci builds the images of this project: a static program with nothing but CA
// roots, a user and /tmp.
//
// It owns the contents of an image, its configuration and the form of its archive: an OCI
// layout in a tar with one multi-platform index, named by the annotations that
// containerd, podman and kind read on import. It runs `go build`, reads the module, and
// writes one archive for each image.
//
// The same sources, toolchain and version give the same bytes: times are the Unix epoch,
// files are sorted, and the binaries contain neither paths nor version control state.
//
// It is not a registry client: it pulls and pushes nothing.
package oci
