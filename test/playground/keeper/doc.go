// SPDX-License-Identifier: Apache-2.0

// Package keeper runs the helper processes of a playground. There are two kinds. So that
// they need no binaries of their own, every program that starts playgrounds (the demo, a
// test binary) runs itself a second time with a hidden argument or variable and calls
// Run:
//
//	node CONFIG   the process node of a cluster, configured by a JSON file
//	reap          the reaper: ends what its owner started when that goes away
//
// It owns nothing; see the packages node and process.
package keeper
