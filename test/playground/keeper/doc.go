// SPDX-License-Identifier: Apache-2.0

// Package keeper is what a program does when it was started to serve a
// playground instead of a person. A playground needs two kinds of processes of
// our own, and so that they need no binaries of their own, every program that
// starts playgrounds (the demo, a test binary) runs itself a second time with a
// hidden argument or variable and hands over to Run:
//
//	node CONFIG   the process node of a cluster, configured by a JSON file
//	reap          the reaper: ends what its owner started when that goes away
//
// It owns nothing; see the packages node and process.
package keeper
