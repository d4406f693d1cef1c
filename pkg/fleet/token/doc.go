// SPDX-License-Identifier: Apache-2.0

// Package token creates, lists, checks and revokes the tokens with which clusters join a hub.
package token
