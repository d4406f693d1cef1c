// SPDX-License-Identifier: Apache-2.0

// Package node is the process node: a small stand-in for kubelet, scheduler and
// kube-proxy that runs pods as processes of this machine, without root and without
// containers. With it, `make demo` and the tests install the product with its real
// manifests.
//
// It runs a pod only if it has a program for every container's image (Config.Images, by
// the last part of the repository). Other pods stay Pending, and their container status
// gives the reason. A program sees its pod through pkg/inpod: files below OCM_ROOT,
// listeners by OCM_PORTS.
//
// It reads Pods, Secrets, ConfigMaps, Services and EndpointSlices; it writes its Node and
// Lease, bindings, pod status, Events, ServiceAccount tokens, and it removes deleted
// pods. On disk it owns one folder: pods/<uid> with files and pid files, and logs/. Pod
// addresses are virtual; the egress proxy connects kube-apiserver to the process behind
// one.
//
// It is not kubelet: it has no images, no cgroups, no isolation (pods run as the user who
// started the playground), no exec, no host paths or volumes other than Secret,
// ConfigMap, downward API, projected and emptyDir, and no affinity beyond nodeSelector.
// Only kube-apiserver can reach Service addresses; programs cannot. Pods end with the
// node and are restarted with it.
package node
