// SPDX-License-Identifier: Apache-2.0

// Package volume writes the files of a pod's volume the way kubelet does, so that a
// reader sees either the old content or the new one, never a mixture: the files are in a
// folder of their own, a symbolic link named ..data points to it, each visible name is a
// link through ..data, and an update creates a new folder and swaps that one link.
//
// It owns one folder for each volume. Files get mode 0600 and folders 0700, whatever the
// pod's manifest says, because everything runs as one user. It does not know where
// content comes from, and it mounts nothing.
package volume
