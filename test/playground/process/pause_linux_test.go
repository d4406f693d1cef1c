// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// busyVariable turns this test binary into a program whose threads never rest.
const busyVariable = "TEST_BUSY"

// TestNoThreadOfAPausedProgramRuns tests Signal with threads that wait for a CPU: each of
// them stops only when it gets one, which may be long after the signal was sent.
func TestNoThreadOfAPausedProgramRuns(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	p, err := process.Start(process.Spec{
		Name: "busy",
		Dir:  dir,
		Path: self,
		Args: []string{"-test.run=^TestBusy$"},
		Env:  []string{busyVariable + "=1", "GOMAXPROCS=16"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Kill()) })
	for range 20 {
		require.NoError(t, process.Signal(dir, "busy", true))
		require.Empty(t, running(t, p.PID()))
		require.NoError(t, process.Signal(dir, "busy", false))
	}
}

// TestBusy is the program of TestNoThreadOfAPausedProgramRuns.
func TestBusy(t *testing.T) {
	if os.Getenv(busyVariable) == "" {
		return
	}
	for range 16 {
		go func() {
			for t.Context().Err() == nil {
			}
		}()
	}
	<-t.Context().Done()
}

// running returns the states of the threads that are not stopped.
func running(t *testing.T, pid int) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/status")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []string
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if state, ok := strings.CutPrefix(lines.Text(), "State:\t"); ok && !strings.HasPrefix(state, "T") {
				out = append(out, state)
			}
		}
		require.NoError(t, file.Close())
	}
	return out
}
