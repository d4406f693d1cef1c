// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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

// check names a link for completion that is missing, or leads nowhere, and the line that it
// prints makes it.
func TestAPluginThatKubectlCannotCompleteIsNamed(t *testing.T) {
	s := newScene(t)
	dir := t.TempDir()
	completed := func() string { return s.run("check", "hub", "--context", "hub").out }
	require.NotContains(t, completed(), "OCM0106", "it is not run by kubectl")
	s.env["PATH"] = dir
	t.Setenv("PATH", dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl-ocm"), []byte("#!/bin/sh\n"), 0o700))
	link := filepath.Join(dir, "kubectl_complete-ocm")
	for _, cause := range []string{"there is none on PATH", link + " leads to kubectl-ocm-v0, which cannot be run"} {
		said := completed()
		require.Contains(t, said, "OCM0106 kubectl completes no words of this plugin")
		require.Contains(t, said, "cause: "+cause)
		_, fix, _ := strings.Cut(said[strings.Index(said, "OCM0106"):], "fix:   kubectl ocm ")
		fix, _, _ = strings.Cut(fix, "\n")
		require.Zero(t, s.run(strings.Fields(fix)...).code)
		require.NotContains(t, completed(), "OCM0106")
		require.NoError(t, os.Remove(link))
		require.NoError(t, os.Symlink("kubectl-ocm-v0", link))
	}
	require.NotContains(t, s.run("check", "hub", "--context", "hub", "--skip", "OCM0106").out, "OCM0106")
	file := filepath.Join(dir, "a.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"), 0o600))
	require.Zero(t, s.run("check", "-f", file, "--fail-on", "warning", "--context", "hub").code, "it says nothing about manifests")
}

// The kubectl is one that says what a test wants. The API server is that of the scene.
func TestAKubectlThatDoesNotSuitTheServerIsNamed(t *testing.T) {
	s := newScene(t)
	dir := t.TempDir()
	s.env["PATH"] = dir
	server := strings.TrimPrefix(regexp.MustCompile(`reachable, v1\.\d+`).FindString(s.run("check", "hub", "--context", "hub").out), "reachable, v1.")
	minor, err := strconv.Atoi(server)
	require.NoError(t, err)
	for _, tc := range []struct {
		minor int
		named bool
	}{{minor, false}, {minor - 1, false}, {minor + 1, false}, {minor - 2, true}, {minor + 2, true}} {
		script := fmt.Sprintf("#!/bin/sh\necho '{\"clientVersion\":{\"gitVersion\":\"v1.%d.4\"}}'\n", tc.minor)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o700))
		said := s.run("check", "hub", "--context", "hub").out
		require.Equal(t, tc.named, strings.Contains(said, fmt.Sprintf("OCM0104 %s/kubectl is v1.%d.4, and the API server v1.%d.", dir, tc.minor, minor)), said)
		require.Equal(t, tc.named, strings.Contains(said, fmt.Sprintf("fix:   install kubectl v1.%d.", minor)), said)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\nexit 1\n"), 0o700))
	require.NotContains(t, s.run("check", "hub", "--context", "hub").out, "OCM0104", "a kubectl that cannot say it is not judged")
}
