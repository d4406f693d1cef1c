// SPDX-License-Identifier: Apache-2.0

// Package review asks a cluster who the bearer of a token is, and what somebody
// may do. It keeps nothing: who wants to remember answers does so.
//
// It writes nothing but TokenReviews and SubjectAccessReviews, which no cluster
// stores, and needs the rights to create them. Tokens are neither kept nor logged.
package review
