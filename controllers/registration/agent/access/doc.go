// SPDX-License-Identifier: Apache-2.0

// Package access asks a hub what a credential may do there.
//
// It holds the two lists of rights that an agent needs, one for the bootstrap
// kubeconfig and one for its own access, and asks by SelfSubjectAccessReviews.
// The answer names each right that is missing. It changes nothing on the hub
// and remembers nothing: who asks decides how long an answer is good for.
package access
