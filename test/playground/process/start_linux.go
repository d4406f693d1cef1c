// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// stopped reports whether no thread of a process runs any more (field 3 of
// /proc/PID/task/TID/stat). A thread that has ended does not.
func stopped(pid int) (bool, error) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(tasks + "/" + thread.Name() + "/stat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return false, err
		}
		if state := strings.TrimSpace(string(stat[bytes.LastIndexByte(stat, ')')+1:])); state == "" || !strings.ContainsRune("TtZX", rune(state[0])) {
			return false, nil
		}
	}
	return true, nil
}

// startOf returns the start time of a process: the ID of the boot and the clock ticks
// since then (fields 3 and 22 of /proc/PID/stat; a zombie has ended).
func startOf(pid int) (string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	// The program's name is in brackets and may contain anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return "", errors.New("unexpected content of /proc/PID/stat")
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", os.ErrProcessDone
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[19], nil
}
