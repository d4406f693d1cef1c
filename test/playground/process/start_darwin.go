// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// States of sys/proc.h.
const (
	// halted is SSTOP: the process is stopped.
	halted = 4
	// zombie is SZOMB: the process has ended.
	zombie = 5
)

// stopped reports whether a process is stopped.
func stopped(pid int) (bool, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return false, err
	}
	return info.Proc.P_stat == halted || info.Proc.P_stat == zombie, nil
}

// startOf returns the start time of a process, in microseconds of wall time.
func startOf(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", err
	}
	if info.Proc.P_pid != int32(pid) || info.Proc.P_stat == zombie {
		return "", os.ErrProcessDone
	}
	start := info.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", start.Sec, start.Usec), nil
}
