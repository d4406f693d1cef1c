// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command pause holds the namespaces of a pod open in test clusters: it waits for a
// signal to end, and reaps orphaned processes. It reads and writes nothing, and the
// project does not publish it.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
