// SPDX-License-Identifier: Apache-2.0

// Package access asks a hub what a credential may do there.
//
// It holds the two lists of rights an agent needs, one for the bootstrap kubeconfig and one
// for its own access, and checks them with SelfSubjectAccessReviews. The answer names each
// missing right, and reasons.go turns it into the reason of HubConnectionDegraded. The package
// changes nothing on the hub. An Asker remembers the last answer for a while.
package access
