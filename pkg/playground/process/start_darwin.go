// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of sys/proc.h: the process has ended.
const zombie = 5

// startOf names the moment a process started, in microseconds of wall time.
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
