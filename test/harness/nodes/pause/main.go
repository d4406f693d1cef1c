// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command pause holds the namespaces of a pod open in test clusters: it waits
// until it is told to end, and reaps what is left to it. It reads and writes
// nothing, and it is no part of what the project publishes.
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
