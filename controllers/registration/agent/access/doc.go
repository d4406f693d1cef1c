// SPDX-License-Identifier: Apache-2.0

// Package access asks a hub what a credential may do there.
//
// It holds the two lists of rights an agent needs, one for the bootstrap kubeconfig and one
// for its own access, and checks them with SelfSubjectAccessReviews. The answer names each
// missing right. The package changes nothing on the hub and caches nothing: the caller
// decides how long an answer is valid.
package access
