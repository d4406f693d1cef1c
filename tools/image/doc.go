// SPDX-License-Identifier: Apache-2.0

// Command image builds the container images of this project without a
// container engine: it compiles each program for each platform and writes one
// OCI archive a program, which containerd, podman and kind import as they are.
//
//	go run ./tools/image -version v0.1.0 -out dist/images ocm-hub=./controllers/ocm-hub
//
// It reads the module in the current folder and writes <out>/<name>.tar; it
// pushes nothing and needs no network once the modules are downloaded. With
// -rootfs it writes the files of one image to a folder instead, which is what
// the Containerfile does inside a builder.
//
// What an image holds is decided in tools/image/oci.
package main
