// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command cell holds the namespaces that one test cluster lives in: processes, network,
// mounts, control groups, host name and IPC. Package nodes starts it; it is of no use on
// its own.
//
// The outer process waits outside until its standard input closes, which also happens
// when its starter is killed. The inner process is PID 1 inside: when it ends, the kernel
// ends everything else there and drops every mount and network interface, so that nothing
// of a cluster can outlive it. The outer process then removes what the kernel does not:
// the control groups below -cgroup and the folder -dir.
//
// With -root, the inner process gives the cell the machine's file system under a
// temporary layer: kubelet, containerd and CNI plugins may write anywhere, but only what
// they write below -dir reaches the disk.
//
// It writes <dir>/cell.json, which names the inner process, when the cell is ready.
// Called with -enter, it joins an existing cell and becomes a program there; package
// nodes starts everything this way.
package main
