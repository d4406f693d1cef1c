// SPDX-License-Identifier: Apache-2.0

package harness_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// processesOf lists the command lines of running processes that name dir.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-eo", "pid=,stat=,args=", "-ww").Output()
	require.NoError(t, err)
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir+"/") {
			found = append(found, line)
		}
	}
	return found
}
