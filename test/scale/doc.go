// SPDX-License-Identifier: Apache-2.0

// Package scale takes a hub through the life of a large fleet, and writes what that costs as a
// report: clusters join, rest, are placed, get works and add-ons, lose the hub and find it
// again. Nothing is compared with budgets: that is what test/perf does. It is built with the
// tag perf, and started by:
//
//	make scale CLUSTERS=1000
//
// One etcd, one kube-apiserver, one kube-controller-manager and one ocm-hub, installed as users
// install it, share the machine with the simulated agents of test/fakefleet. Package
// test/scale/report writes the report, package test/scale/metrics reads the metrics of
// kube-apiserver.
package scale
