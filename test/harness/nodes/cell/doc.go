// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command cell holds the namespaces that one test cluster lives in: processes,
// network, mounts, control groups, host name and IPC. It is started by package nodes and is of
// no use alone.
//
// The outer process waits outside until its standard input closes, which also
// happens when its starter is killed. The inner process is number 1 inside: when
// it ends, the kernel ends everything else there and drops every mount and
// network interface, so nothing of a cluster can survive it. The outer process
// then removes what the kernel does not: the control groups below -cgroup and
// the folder -dir.
//
// With -root the inner process gives the cell the machine's file system under a
// layer that is thrown away: kubelet, containerd and CNI plugins may write
// wherever they like, only what they write below -dir reaches the disk.
//
// It writes <dir>/cell.json, which names the inner process, when the cell is
// ready. Called with -enter it joins a cell that exists and becomes a program
// there; that is how package nodes starts everything.
package main
