// SPDX-License-Identifier: Apache-2.0

// Package oci makes the images of this project: a static program on nothing
// else but CA roots, a user and /tmp.
//
// It owns what an image contains, its configuration and the form of its
// archive: an OCI layout in a tar with one multi-platform index, named by the
// annotations that containerd, podman and kind read on import. It runs `go
// build`, reads the module, and writes one archive an image.
//
// The same sources, toolchain and version give the same bytes: times are the
// Unix epoch, files are sorted, and paths and version control state stay out
// of the binaries.
//
// It is not a registry client: nothing is pulled and nothing is pushed.
package oci
