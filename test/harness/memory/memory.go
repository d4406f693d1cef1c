// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Usage is the memory of a process, in bytes.
type Usage struct {
	// Anon is RssAnon: private memory that is not backed by files.
	Anon int64
	// Resident is VmRSS: Anon, and the pages of files, mostly of its program, that it has
	// touched.
	Resident int64
	// Peak is VmHWM: the maximum of Resident so far.
	Peak int64
}

// Since returns the growth of Anon and Resident since before; Peak stays.
func (u Usage) Since(before Usage) Usage {
	return Usage{Anon: u.Anon - before.Anon, Resident: u.Resident - before.Resident, Peak: u.Peak}
}

// Max returns the maximum of each field.
func (u Usage) Max(other Usage) Usage {
	return Usage{Anon: max(u.Anon, other.Anon), Resident: max(u.Resident, other.Resident), Peak: max(u.Peak, other.Peak)}
}

// String prints all three.
func (u Usage) String() string {
	return fmt.Sprintf("RssAnon %s, VmRSS %s, VmHWM %s", MiB(u.Anon), MiB(u.Resident), MiB(u.Peak))
}

// MiB prints an amount of memory.
func MiB(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Of reads the memory of a process. The error is os.ErrProcessDone for a process that has
// ended and is still listed, and the error of reading /proc otherwise.
func Of(pid int) (Usage, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	status, err := os.ReadFile(path)
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	fields := map[string]*int64{"RssAnon:": &u.Anon, "VmRSS:": &u.Resident, "VmHWM:": &u.Peak}
	for line := range strings.Lines(string(status)) {
		words := strings.Fields(line)
		if len(words) != 3 || fields[words[0]] == nil {
			continue
		}
		kibibytes, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("reading %s: %w", path, err)
		}
		*fields[words[0]] = kibibytes << 10
		delete(fields, words[0])
	}
	if len(fields) > 0 {
		return Usage{}, fmt.Errorf("reading %s: it says nothing of its memory: %w", path, os.ErrProcessDone)
	}
	return u, nil
}

// WorkingSet returns the memory of the container of a process, in bytes, as the kubelet
// counts it and "kubectl top" shows it: everything that is charged to its control group
// except for inactive pages of files, which the kernel would reclaim first.
func WorkingSet(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(part) != 3:
		case part[1] == "memory":
			return workingSet("/sys/fs/cgroup/memory"+part[2], "memory.usage_in_bytes", "total_inactive_file")
		case part[1] == "":
			found, err := workingSet("/sys/fs/cgroup"+part[2], "memory.current", "inactive_file")
			if err == nil {
				return found, nil
			}
		}
	}
	return 0, fmt.Errorf("process %d is in no control group that counts memory", pid)
}

func workingSet(group, usage, inactive string) (int64, error) {
	raw, err := os.ReadFile(filepath.Join(group, usage))
	if err != nil {
		return 0, err
	}
	used, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", usage, err)
	}
	stat, err := os.ReadFile(filepath.Join(group, "memory.stat"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(stat)) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == inactive {
			idle, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading memory.stat: %w", err)
			}
			return max(used-idle, 0), nil
		}
	}
	return 0, fmt.Errorf("memory.stat of %s has no %s", group, inactive)
}
