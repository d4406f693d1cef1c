// SPDX-License-Identifier: Apache-2.0

// Package request checks and answers the certificate requests of clusters that ask to join,
// and knows with which join token each was sent.
package request
