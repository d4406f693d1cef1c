// SPDX-License-Identifier: Apache-2.0

// Package request judges and answers the certificate requests by which clusters
// ask to be joined, and knows by which join token each was sent.
package request
