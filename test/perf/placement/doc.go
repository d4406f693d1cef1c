// SPDX-License-Identifier: Apache-2.0

// Package placement measures how fast a hub decides placements and writes their
// decisions, what it sends at rest and how much memory it uses, and compares that with
// the budgets of test/perf/placement.yaml. It is built with the tag perf, because its
// figures mean nothing while other tests use the machine:
//
//	go test -tags perf -v ./test/perf/placement
//
// One etcd, one kube-apiserver, one kube-controller-manager and one ocm-hub, installed as
// users install it, share the machine. The clusters are objects that are never accepted;
// the placements tolerate that. kube-apiserver itself counts the requests, in its audit
// log.
package placement
