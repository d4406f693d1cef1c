// SPDX-License-Identifier: Apache-2.0

// Package manifest reads the manifests of a ManifestWork.
//
// A manifest is a user's object in JSON. Decode turns it into an unstructured object,
// within bounds of size and depth, and rejects what could never be applied, naming the
// field and the fix. Clean removes what only a server may write. Rank orders objects so
// that namespaces and definitions come before what lives in them.
//
// Everything here is pure: no client, no clock. internal/discovery knows whether the kind
// exists, internal/apply writes objects, and the webhook decides what the hub rejects at
// admission.
package manifest
