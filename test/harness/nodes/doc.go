// SPDX-License-Identifier: Apache-2.0

// Package nodes runs Kubernetes clusters with real nodes for tests: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, containerd, kubelet and kube-proxy as plain
// processes, without a container engine around them. Pods, Services, webhooks, logs and
// exec work as on any cluster.
//
// Each cluster lives in a cell (see the cell folder): namespaces of its own and a file
// system whose changes are discarded. The cells of one Fabric see each other over a
// bridge and nothing else, so that no test traffic leaves the machine. Test code reaches
// a cluster by Cluster.Config, whose connections are opened inside, and runs programs
// there by Cluster.Exec.
//
// It owns the folder of a Fabric, the control group named after it, and what runs in the
// cells. All of it is gone after Fabric.Close, and also when the test fails, panics or is
// killed: the cells end when the pipe to their starter closes. Start checks that against
// an Inventory from before.
//
// It needs Linux, root, and containerd, runc, containernetworking-plugins, nftables,
// iproute2, iptables (which the CNI plugins call) and conntrack; Kubernetes comes from
// test/kubernetes. Tests that use it carry the build tag e2e. The comments in settings.go
// explain what nodes need to run this way.
//
// It is not meant for interactive clusters; test/playground is.
package nodes
