// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/terminal"
)

// onTerminal runs a program whose kubectl prints the size of its terminal, and types Ctrl-C: kubectl gets one interrupt and
// decides what it means.
func onTerminal(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	own := terminal.Open(t, 33, 99)
	own.Give(cmd)
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
