// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// read returns the files of a folder by path.
func read(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			text, err := os.ReadFile(filepath.Join(folder, path))
			require.NoError(t, err)
			out[path] = string(text)
		}
		return err
	}))
	return out
}

func TestTheBundlesAreUpToDate(t *testing.T) {
	version, err := os.ReadFile("../../VERSION")
	require.NoError(t, err)
	out := t.TempDir()
	stale := filepath.Join(out, "klusterlet", "manifests", "stale.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(stale), 0o700))
	require.NoError(t, os.WriteFile(stale, nil, 0o600))
	require.NoError(t, run(strings.TrimSpace(string(version)), out))
	require.Equal(t, read(t, "../../config/olm"), read(t, out))
}
