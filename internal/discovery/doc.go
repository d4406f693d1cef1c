// SPDX-License-Identifier: Apache-2.0

// Package discovery answers one question about an API server: which resource serves a
// kind, and whether it is namespaced.
//
// It reads the aggregated discovery document (two requests for all groups) and keeps only
// kinds, plurals and scope: about 100 bytes a kind. Servers without aggregated discovery
// (Kubernetes before 1.26) are queried for the one group and version in question instead.
// An unknown kind causes a refresh, at most one a second, and without a download if the
// document has not changed (ETag). A group whose document is missing or stale affects
// only its own kinds.
//
// It is not a REST mapper: it does not prefer versions, and it never guesses a plural.
// client-go's discovery and restmapper are not used because they link every API group
// into the agent. The package runs no goroutine; a caller that learns of a new
// CustomResourceDefinition calls Invalidate.
package discovery
