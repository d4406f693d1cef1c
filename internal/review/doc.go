// SPDX-License-Identifier: Apache-2.0

// Package review asks a cluster who the bearer of a token is, and what a user may do. It
// caches nothing.
//
// It writes nothing but TokenReviews and SubjectAccessReviews, which a cluster does not
// store, and needs the rights to create them. Tokens are neither kept nor logged.
package review
