// SPDX-License-Identifier: Apache-2.0

// Package manifest reads the objects that a person wants to send: files,
// streams, folders and kustomizations, within bounds, fetching and running
// nothing.
package manifest
