// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// check names a program that kubectl runs in place of a command, and its fix removes the
// program. A file that kubectl would not run shadows nothing.
func TestAProgramThatHidesACommandIsNamed(t *testing.T) {
	s := newScene(t)
	dir := filepath.Join(t.TempDir(), "my bin")
	require.NoError(t, os.Mkdir(dir, 0o700))
	hides := filepath.Join(dir, "kubectl-ocm-hub-init")
	require.NoError(t, os.WriteFile(hides, []byte("#!/bin/sh\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl-ocm-notes"), nil, 0o600))
	s.env["PATH"] = filepath.Join(dir, "absent") + string(filepath.ListSeparator) + dir

	got := s.run("check", "--context", "hub")
	require.Contains(t, got.out, hides+` runs in place of "kubectl ocm hub init"`)
	require.NotContains(t, got.out, "kubectl-ocm-notes")
	_, fix, _ := strings.Cut(got.out, "fix:   rm ")
	fix, _, _ = strings.Cut(fix, "      ")
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c", "rm "+fix).Run())
	require.NoFileExists(t, hides)
	require.NotContains(t, s.run("check", "--context", "hub").out, "OCM0105")
}
