// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
)

// Process is one process of a cluster, of a pod or of the cluster itself.
type Process struct {
	// PID is its process ID outside the cell.
	PID int
	// Command is the program's name, without its folder.
	Command string
	// Memory is its memory usage.
	Memory memory.Usage
}

// Processes lists what runs in the cluster: its programs and its pods.
func (c *Cluster) Processes() ([]Process, error) {
	// Every hierarchy lists all of them; one of these exists.
	var group string
	for _, place := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/pids/"} {
		if _, err := os.Stat(place + c.cgroup()); err == nil {
			group = place + c.cgroup()
		}
	}
	var found []Process
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if ended(err) {
			return nil
		}
		if err != nil || entry.Name() != "cgroup.procs" {
			return err
		}
		body, err := os.ReadFile(path)
		if ended(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for pid := range strings.FieldsSeq(string(body)) {
			one, err := readProcess(pid)
			if ended(err) {
				continue
			}
			if err != nil {
				return err
			}
			found = append(found, one)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing processes of %s: %w", c.Name, err)
	}
	return found, nil
}

// ended reports whether err means that a process, or the control group of a container,
// went away between being listed and being read: its file is gone, or the file is still
// open and its subject is gone.
func ended(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrProcessDone) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODEV)
}

func readProcess(pid string) (Process, error) {
	number, err := strconv.Atoi(pid)
	if err != nil {
		return Process{}, err
	}
	line, err := os.ReadFile("/proc/" + pid + "/cmdline")
	if err != nil {
		return Process{}, err
	}
	held, err := memory.Of(number)
	if err != nil {
		return Process{}, err
	}
	program, _, _ := bytes.Cut(line, []byte{0})
	return Process{PID: number, Command: filepath.Base(string(program)), Memory: held}, nil
}
