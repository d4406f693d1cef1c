// SPDX-License-Identifier: Apache-2.0

package node

import "golang.org/x/sys/unix"

// machineMemory returns this machine's memory in bytes, 0 if unknown.
func machineMemory() int64 {
	size, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(size)
}
