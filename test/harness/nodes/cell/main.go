// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// patience bounds how long the kernel may take to end a cell, and to release its control
// groups.
const patience = 20 * time.Second

// options are the flags.
type options struct {
	dir, cgroup, name string
	root, inner       bool
	enter             int
}

// Namespaces are entered by threads, and the process must use its main thread, because
// that is the one that others inspect.
func init() { runtime.LockOSThread() }

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "", "folder of the cell; it is removed at the end")
	flag.StringVar(&o.cgroup, "cgroup", "", "name of the control group of everything inside; it is removed at the end")
	flag.StringVar(&o.name, "name", "cell", "host name inside")
	flag.BoolVar(&o.root, "root", false, "give the cell a file system whose changes are thrown away")
	flag.BoolVar(&o.inner, "inner", false, "be the first process inside")
	flag.Int("owner", 0, "process that the cell belongs to, for those who list processes")
	flag.IntVar(&o.enter, "enter", 0, "run the program of the arguments in the cell of this process")
	flag.Parse()
	var err error
	switch {
	case o.enter != 0:
		err = enter(o, flag.Args())
	case o.inner:
		err = inhabit(o)
	default:
		err = hold(o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cell %s: %v\n", o.name, err)
		os.Exit(1)
	}
}

// hold is the outer process: it creates the cell and cleans up after it.
func hold(o options) error {
	if !filepath.IsAbs(o.dir) {
		return fmt.Errorf("folder %q is not an absolute path", o.dir)
	}
	inner := exec.Command("/proc/self/exe", append(os.Args[1:], "-inner")...) //nolint:noctx // it ends by force only
	inner.Stderr = os.Stderr
	inner.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL, // the end of the thread, which is the main one
	}
	ready, err := inner.StdoutPipe()
	if err != nil {
		return err
	}
	if err := inner.Start(); err != nil {
		return fmt.Errorf("making namespaces: %w", err)
	}
	err = announce(o, inner.Process.Pid, ready)
	ended := make(chan struct{})
	go func() {
		_ = inner.Wait() // the state tells how it ended
		close(ended)
	}()
	if err == nil {
		err = awaitClose(inner, ended)
	}
	killed := inner.Process.Kill()
	if errors.Is(killed, os.ErrProcessDone) {
		killed = nil
	}
	select {
	case <-ended:
	case <-time.After(patience):
		killed = errors.Join(killed, errors.New("processes inside could not be ended"))
	}
	return errors.Join(err, killed, removeCgroups(o.cgroup), removeFolder(o.dir))
}

// awaitClose returns when standard input closes for any reason, and fails when the inner
// process ends first.
func awaitClose(inner *exec.Cmd, ended <-chan struct{}) error {
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end as well
		close(closed)
	}()
	select {
	case <-closed:
		return nil
	case <-ended:
		return fmt.Errorf("the first process inside ended: %s", inner.ProcessState)
	}
}

// removeFolder removes dir, and retries while processes that are about to end still write
// into it: the folder of a fabric holds those of its clusters.
func removeFolder(dir string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := os.RemoveAll(dir)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// announce waits for the inner process and writes its PID to cell.json.
func announce(o options, pid int, ready io.Reader) error {
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		return errors.New("the first process inside did not get ready")
	}
	body, err := json.Marshal(map[string]int{"pid": pid})
	if err != nil {
		return err
	}
	path := filepath.Join(o.dir, "cell.json")
	if err := os.WriteFile(path+".new", body, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
