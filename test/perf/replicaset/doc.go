// SPDX-License-Identifier: Apache-2.0

// Package replicaset measures how fast a hub rolls out a ManifestWorkReplicaSet to a
// thousand clusters, how much memory it uses afterwards and what it writes at rest, and
// compares that with the budgets of test/perf/replicaset.yaml. It is built with the tag
// perf, because its figures mean nothing while other tests use the machine:
//
//	go test -tags perf -v ./test/perf/replicaset
//
// One etcd, one kube-apiserver, one kube-controller-manager and one ocm-hub, installed as
// users install it, share the machine. Clusters, their namespaces and the decisions of a
// placement are created by the test. kube-apiserver itself counts the writes, in its
// audit log.
package replicaset
