// SPDX-License-Identifier: Apache-2.0

// Package node is the process node: a small stand-in for kubelet, scheduler and
// kube-proxy that runs pods as processes of this machine, without root and
// without containers. It is what lets `make demo` and the tests install the
// product with its real manifests.
//
// It runs a pod only if every container's image is one that it has a program
// for (Config.Images, by the last part of the repository). Other pods stay
// Pending and their container status says why. A program sees its pod through
// pkg/inpod: files below OCM_ROOT, listeners by OCM_PORTS.
//
// It reads Pods, Secrets, ConfigMaps, Services and EndpointSlices; it writes its
// Node and Lease, bindings, pod status, Events, ServiceAccount tokens, and it
// removes pods that were deleted. On disk it owns one folder: pods/<uid> with
// files and pid files, and logs/. Pod addresses are invented; the egress proxy
// leads kube-apiserver to the process behind one.
//
// It is not kubelet: no images, no cgroups, no isolation (pods run as the user
// who started the playground), no exec, no host paths or other volumes than
// Secret, ConfigMap, downward API, projected and emptyDir, no affinity beyond
// nodeSelector. Programs cannot reach Service addresses, only kube-apiserver
// can. Pods end with the node and start anew with it.
package node
