// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// namespaces are those of one cell, named by its first process.
type namespaces struct{ pid int }

func (n namespaces) path(kind string) string {
	return "/proc/" + strconv.Itoa(n.pid) + "/ns/" + kind
}

// within calls f on a thread that has entered a namespace of the cell: "net", or "pid",
// which applies to the children that f starts. The thread ends with f, so that nothing
// else ever runs on it.
func (n namespaces) within(kind string, f func() error) error {
	flag := map[string]int{"net": unix.CLONE_NEWNET, "pid": unix.CLONE_NEWPID}[kind]
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread cannot be reused
		handle, err := os.Open(n.path(kind))
		if err != nil {
			result <- fmt.Errorf("finding the cell: %w", err)
			return
		}
		defer handle.Close()
		if err := unix.Setns(int(handle.Fd()), flag); err != nil {
			result <- fmt.Errorf("entering the cell: %w", err)
			return
		}
		result <- f()
	}()
	return <-result
}

// dial opens a connection from inside. The address must be numeric.
func (n namespaces) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var connection net.Conn
	err := n.within("net", func() error {
		var err error
		connection, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return connection, err
}

// run runs a command in the cell's network, with the machine's files, and waits for it.
func (n namespaces) run(command *exec.Cmd) error {
	if err := n.within("net", command.Start); err != nil {
		return err
	}
	return command.Wait()
}

// start starts a program in every namespace of the cell and in its control
// group. Its path is looked up outside.
func (c *cell) start(spec process.Spec) (*process.Process, error) {
	path, err := exec.LookPath(spec.Path)
	if err != nil {
		return nil, err
	}
	prefix := []string{"-enter", strconv.Itoa(c.pid), "-name", spec.Name, "-cgroup", c.cgroup, "--", path}
	spec.Path, spec.Args = c.outer.Path, append(prefix, spec.Args...)
	var started *process.Process
	err = c.within("pid", func() error {
		var err error
		started, err = process.Start(spec)
		return err
	})
	return started, err
}
