// SPDX-License-Identifier: Apache-2.0

// Command image builds the container images of this project without a container engine:
// it compiles each program for each platform and writes one OCI archive for each program,
// which containerd, podman and kind import directly.
//
//	go run ./tools/image -version v0.1.0 -out dist/images ocm-hub=./controllers/ocm-hub
//
// It reads the module in the current folder and writes <out>/<name>.tar; it pushes
// nothing and needs no network once the modules are downloaded. With -rootfs it writes
// the files of one image to a folder instead; the Containerfile does this inside a
// builder.
//
// Package tools/image/oci decides what an image contains.
package main
