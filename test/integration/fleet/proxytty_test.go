// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminalOf makes a terminal of 33 lines and 99 columns, and returns its two ends: the test's, and that of a program.
func terminalOf(t *testing.T) (own, program *os.File) {
	t.Helper()
	own, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = own.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(own.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(own.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(own.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 99}))
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = program.Close() })
	return own, program
}

// onTerminal runs a program whose kubectl prints the size of its terminal, and types Ctrl-C: kubectl gets one interrupt and
// decides what it means.
func onTerminal(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	own, program := terminalOf(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	said := bufio.NewReader(own)
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "33 99\r\n", line)
	_, err = own.WriteString("\x03")
	require.NoError(t, err)
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, 9, exit.ExitCode())
}
