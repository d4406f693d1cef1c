// SPDX-License-Identifier: Apache-2.0

// Package playground runs Kubernetes clusters on this machine from plain
// processes: etcd, kube-apiserver and kube-controller-manager on loopback, and
// a process node that runs the pods of our own images as local processes. No
// root, no container engine, nothing but a folder. `make demo` and the test
// harness stand on it.
//
// It owns the folder Config.Dir: keys, kubeconfig files (mode 0600), etcd's
// data, logs, pid files, and state.json with the port. Whoever has that folder
// can stop everything that was started in it, also after a crash. Into the
// cluster it writes what kubeadm would: the ConfigMap cluster-info in
// kube-public and the right to read it anonymously.
//
// Processes outlive the program that started them unless Config.Reaper is set.
// A folder can be started again: the cluster comes back with its data, its
// identity and its address.
//
// It is not a distribution: one member of everything, no durability against a
// power cut (etcd does not sync), certificates that never rotate, kube-proxy,
// scheduler and DNS absent. It knows nothing of Open Cluster Management.
package playground
