// SPDX-License-Identifier: Apache-2.0

// Package discovery answers one question about an API server: which resource
// serves a kind, and is it namespaced.
//
// It reads the aggregated discovery document (two requests for all groups) and
// keeps of it only kinds, plurals and scope: about 100 bytes a kind. Servers
// that do not aggregate (Kubernetes below 1.26) are asked for the one group and
// version in question instead. A kind that is unknown leads to a new look, at
// most one a second and free of charge where the document has not changed
// (ETag); a group whose document is missing or stale harms only its own kinds.
//
// It is not a REST mapper: it does not prefer versions, and it never guesses a
// plural. client-go's discovery and restmapper are not used because they link
// every API group into the agent. The package holds no goroutine; a caller
// that learns of a new CustomResourceDefinition calls Invalidate.
package discovery
