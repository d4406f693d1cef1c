// SPDX-License-Identifier: Apache-2.0

// Package registration measures what it costs a hub to accept and manage clusters, and
// compares that with the budgets of test/perf/registration.yaml. It is built with the tag
// perf, because its figures mean nothing while other tests use the machine:
//
//	go test -tags perf -v -timeout 30m ./test/perf/registration
//
// One etcd, one kube-apiserver, one kube-controller-manager and one ocm-hub, installed as
// users install it, share the machine with the simulated agents of test/fakefleet.
// kube-apiserver itself counts the writes, in its audit log.
package registration
