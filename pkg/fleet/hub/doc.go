// SPDX-License-Identifier: Apache-2.0

// Package hub makes a cluster a hub, tells how it is, and removes it again.
package hub
