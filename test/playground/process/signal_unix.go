// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// detach gives the program a session, hence a process group, of its own: a
// terminal's interrupt does not reach it, and one signal ends all of it.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// signalGroup sends SIGTERM, or SIGKILL when hard. A group that is gone is not an error.
func signalGroup(pid int, hard bool) error {
	signal := syscall.SIGTERM
	if hard {
		signal = syscall.SIGKILL
	}
	if err := syscall.Kill(-pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// pause stops or resumes a process, or a process group if pid is negative.
func pause(pid int, paused bool) error {
	signal := syscall.SIGCONT
	if paused {
		signal = syscall.SIGSTOP
	}
	return syscall.Kill(pid, signal)
}

func exitCode(state *os.ProcessState) int {
	if state == nil {
		return -1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
