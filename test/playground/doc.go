// SPDX-License-Identifier: Apache-2.0

// Package playground runs Kubernetes clusters on this machine from plain processes: etcd,
// kube-apiserver and kube-controller-manager on loopback, and a process node that runs
// the pods of the project's own images as local processes. It needs no root, no container
// engine, nothing but a folder. `make demo`, the command `dev up` of the plugin and the test
// harness build on it.
//
// It owns the folder Config.Dir: keys, kubeconfig files (mode 0600), etcd's data, logs,
// pid files, and state.json with the port. With that folder, everything that was started
// in it can be stopped, even after a crash. Into the cluster it writes what kubeadm
// would: the ConfigMap cluster-info in kube-public and the right to read it anonymously.
//
// Processes outlive the program that started them unless Config.Reaper is set. A cluster
// can be started again from its folder, with its data, identity and address.
//
// It is not a distribution: it has one member of everything, no durability against a
// power cut (etcd does not sync), certificates that never rotate, and no kube-proxy,
// scheduler or DNS. It knows nothing about Open Cluster Management.
package playground
