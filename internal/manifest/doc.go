// SPDX-License-Identifier: Apache-2.0

// Package manifest reads the manifests of a ManifestWork.
//
// A manifest is somebody else's object in JSON. Decode turns it into an
// unstructured object, within bounds of size and depth, and refuses with the
// field and the fix what could never be applied. Clean leaves out what only a
// server may write. Rank orders objects so that namespaces and definitions
// come before what lives in them.
//
// Everything here is pure: no client, no clock. Whether the kind exists is
// asked of internal/discovery, how an object is written is internal/apply's business,
// and what the hub refuses at admission is the webhook's.
package manifest
