// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// enter joins the cell of process o.enter and becomes the program of the remaining
// arguments. The caller chooses the PID namespace, because it applies to children only.
// "ip netns exec" would not work: it mounts a new /sys, which hides the control groups.
func enter(o options, program []string) error {
	if len(program) == 0 {
		return errors.New("no program to run in the cell")
	}
	all, err := hierarchies()
	if err != nil {
		return err
	}
	if err := join(all, "/", o.cgroup+"/"+programs); err != nil {
		return err
	}
	// Threads share their root folder, and a thread that shares it may not change mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("leaving the other threads: %w", err)
	}
	kinds := []string{"cgroup", "ipc", "uts", "net", "mnt"}
	handles := make([]int, len(kinds))
	for i, kind := range kinds {
		path := "/proc/" + strconv.Itoa(o.enter) + "/ns/" + kind
		if handles[i], err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("opening %s: %w", path, err)
		}
	}
	for i, kind := range kinds {
		if err := unix.Setns(handles[i], 0); err != nil {
			return fmt.Errorf("entering the %s namespace: %w", kind, err)
		}
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return syscall.Exec(program[0], program, os.Environ())
}
