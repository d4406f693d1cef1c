// SPDX-License-Identifier: Apache-2.0

// Package harness gives Go tests real Kubernetes clusters.
//
// ControlPlane starts etcd, kube-apiserver and kube-controller-manager on loopback for
// one test (about 2.5 s), and Shared does so once for all tests of a package. Fresh and
// FreshWithNode reset a cluster that an earlier test has used (about 0.3 s). A Cluster
// provides the administrator's configuration and, by As, that of any ServiceAccount with
// a real token, so that a control loop runs with exactly the rights it has in production.
//
// Nothing that a test started outlives it. t.Cleanup stops the processes and removes the
// folder; a reaper, which is this test binary run a second time with a pipe as its
// standard input, does the same when the test process is killed or times out.
//
// The binaries come from KUBEBUILDER_ASSETS when they fit, else from the cache that `make
// kubernetes` fills (OCM_KUBERNETES_CACHE moves it). The harness never builds them and
// never skips a test: without them, the test fails and its message names the command to
// run.
package harness
