// SPDX-License-Identifier: Apache-2.0

// Package manifest reads objects from files, streams, folders and kustomizations, with bounded
// size, without fetching or running anything.
package manifest
