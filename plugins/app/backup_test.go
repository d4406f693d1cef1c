// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// checksum is that of a backup: addresses in it differ between runs.
var checksum = regexp.MustCompile(`"sha256":"[0-9a-f]{64}"`)

// TestABackUpIsALineForEachObject writes the same backup to standard output and to a file, which
// replaces an earlier one when it is complete.
func TestABackUpIsALineForEachObject(t *testing.T) {
	s := newScene(t)
	streamed := s.run("hub", "backup", "-", "--context", "hub")
	require.Zero(t, streamed.code, streamed.err)
	require.Empty(t, s.hub.Changes())
	require.Contains(t, streamed.err, "hub saved to -: 14 objects of 8 kinds")
	goldentest.Compare(t, "golden/hub-backup", checksum.ReplaceAllString(streamed.out, `"sha256":"<sha256>"`))

	folder := t.TempDir()
	path := filepath.Join(folder, "hub.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("an earlier backup"), 0o644))
	got := s.run("hub", "backup", path, "--context", "nosuch")
	require.Equal(t, ui.ExitFailed, got.code)
	got = s.run("hub", "backup", path, "--context", "spoke")
	require.Equal(t, ui.ExitFailed, got.code, "it is no hub")
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "an earlier backup", string(kept))

	got = s.run("hub", "backup", path, "--context", "hub")
	require.Zero(t, got.code, got.err)
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.Count(streamed.out, "\n"), strings.Count(string(saved), "\n"))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "others can read it")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left")

	planned := s.run("hub", "restore", path, "--context", "hub", "--merge", "--dry-run", "-o", "json")
	require.Zero(t, planned.code, planned.err)
	require.Contains(t, planned.out, `"action": "unchanged"`)
	piped := s.runIn(string(saved), "hub", "restore", "-", "--context", "hub", "--merge", "--dry-run", "-o", "json")
	require.Equal(t, planned.out, piped.out)
}
