// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package terminal gives programs under test a terminal, at which the test sits: it reads what they
// print, types, and changes the size.
package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Terminal is open until the test ends. It is read and written as by a person who sits at it; a read
// waits for output as long as there may be any.
type Terminal struct {
	*os.File
	program *os.File
}

// Open makes a terminal of this size.
func Open(t testing.TB, rows, columns uint16) *Terminal {
	t.Helper()
	own, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = own.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(own.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(own.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = program.Close() })
	out := &Terminal{own, program}
	out.Resize(t, rows, columns)
	return out
}

// Resize changes the size, and the kernel tells the programs of the terminal.
func (x *Terminal) Resize(t testing.TB, rows, columns uint16) {
	t.Helper()
	require.NoError(t, unix.IoctlSetWinsize(int(x.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}))
}

// Give makes it the controlling terminal of a command that has not started, and its three streams.
func (x *Terminal) Give(cmd *exec.Cmd) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.program, x.program, x.program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}
