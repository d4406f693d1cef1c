// SPDX-License-Identifier: Apache-2.0

// Package token makes, lists, checks and revokes the tokens by which clusters
// join a hub.
package token
