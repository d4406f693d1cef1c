// SPDX-License-Identifier: Apache-2.0

// Package scene is a hub that benchmarks put under load: one etcd, one kube-apiserver,
// one kube-controller-manager and ocm-hub as a process, installed as `kubectl ocm hub
// init` does, with a log of all requests to the API server.
package scene
