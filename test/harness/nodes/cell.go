// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// cell is one set of namespaces, and the pipe that ends it when it closes.
type cell struct {
	namespaces
	outer  *exec.Cmd
	cgroup string
	pipe   io.Closer
	ended  chan struct{}
	// said is the output of the cell's own processes, which is how they report failures.
	// It is read after ended is closed.
	said bytes.Buffer
}

// openCell creates a cell for the folder dir, which is removed with it. A cell with a
// file system of its own also owns the control group named cgroup.
func (f *Fabric) openCell(ctx context.Context, name, dir, cgroup string) (*cell, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	c := &cell{cgroup: cgroup, ended: make(chan struct{})}
	c.outer = exec.Command(f.cellProgram(), "-owner", strconv.Itoa(os.Getpid()), "-dir", dir, "-name", name) //nolint:noctx // it ends by its pipe
	if cgroup != "" {
		c.outer.Args = append(c.outer.Args, "-root", "-cgroup", cgroup)
	}
	c.outer.Stderr = &c.said
	c.outer.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal's interrupt does not reach it
	var err error
	if c.pipe, err = c.outer.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.outer.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = c.outer.Wait() // the state and the output tell how it ended
		close(c.ended)
	}()
	err = wait.PollUntilContextTimeout(ctx, pollEvery, time.Minute, true, func(context.Context) (bool, error) {
		select {
		case <-c.ended:
			return false, c.failure()
		default:
		}
		return c.readPID(filepath.Join(dir, "cell.json"))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening cell %s: %w", name, err), c.close())
	}
	return c, nil
}

// readPID reads the PID of the first process inside, once it is there.
func (c *cell) readPID(file string) (bool, error) {
	body, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var known struct {
		PID int `json:"pid"`
	}
	err = json.Unmarshal(body, &known)
	c.pid = known.PID
	return err == nil, err
}

// failure returns why an ended cell failed; nil when it ended normally.
func (c *cell) failure() error {
	if c.outer.ProcessState.Success() {
		return nil
	}
	return fmt.Errorf("the cell's process: %s: %s", c.outer.ProcessState, bytes.TrimSpace(c.said.Bytes()))
}

// close ends the cell and waits until nothing of it is left.
func (c *cell) close() error {
	if c == nil {
		return nil
	}
	err := c.pipe.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	<-c.ended
	return errors.Join(err, c.failure())
}

// ip runs ip(8) commands in the cell's network, and stops at the first error.
func (c *cell) ip(ctx context.Context, commands ...string) error {
	command := exec.CommandContext(ctx, "ip", "-batch", "-")
	command.Stdin = strings.NewReader(strings.Join(commands, "\n"))
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := c.run(command); err != nil {
		return fmt.Errorf("running ip %q: %w: %s", commands, err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}
