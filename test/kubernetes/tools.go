// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package kubernetes names the programs that the tests and the demo run, so
// that this module's go.mod lists everything they need. They are main packages,
// which nothing can import; the build tag keeps this file out of every build.
// The folder build holds the program that builds them.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
