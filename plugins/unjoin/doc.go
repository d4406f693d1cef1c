// SPDX-License-Identifier: Apache-2.0

// Package unjoin is the command "unjoin": it detaches a cluster from its hub. It shows
// what would be removed and asks; pkg/fleet/unjoin decides what is removed on each side
// and when to refuse.
package unjoin
