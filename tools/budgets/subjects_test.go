// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSubjectsHaveOneForm(t *testing.T) {
	root := t.TempDir()
	git := func(arguments ...string) string {
		t.Helper()
		identity := []string{"-C", root, "-c", "user.name=somebody", "-c", "user.email=somebody@example.test", "-c", "commit.gpgsign=false"}
		out, err := exec.CommandContext(t.Context(), "git", append(identity, arguments...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	commit := func(text string) {
		t.Helper()
		git("commit", "-q", "--allow-empty", "-m", text)
	}
	commit("Anything goes before.")
	since := git("rev-parse", "HEAD")
	require.Equal(t, "0 of 0", subjects(t.Context(), root, since).Value)
	for _, text := range []string{"area: add a thing", "area/part: add a thing", "Area: add a thing", "area: Add a thing", "area: add a thing.", "add a thing"} {
		commit(text)
	}
	commit("area: " + "a" + strings.Repeat("ä", maxSubject-len("area: a")))
	commit("area: " + strings.Repeat("a", maxSubject-len("area: ")+1))
	f := subjects(t.Context(), root, since)
	require.Equal(t, "3 of 8", f.Value)
	require.False(t, f.Within)
	require.Contains(t, f.Findings[0].Text, "73 characters, at most 72")
	require.Contains(t, f.Findings[1].Text, `is not of the form "area: what changes": add a thing`)

	require.False(t, subjects(t.Context(), root, "0123456").Within, "a history without the commit")
	shallow := t.TempDir()
	git("clone", "-q", "--depth", "1", "file://"+root, shallow)
	require.True(t, subjects(t.Context(), shallow, since).Within, "a clone that does not reach back")
	require.True(t, subjects(t.Context(), t.TempDir(), since).Within, "no repository")
}
