// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/volume"
)

func content(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(data)
}

func TestAnUpdateShowsExactlyTheNewFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	changed, err := volume.Write(dir, volume.Files{"a": []byte("1"), "gone": []byte("1"), "deep/b": []byte("1")})
	require.NoError(t, err)
	require.True(t, changed)
	before, err := os.Readlink(filepath.Join(dir, "..data"))
	require.NoError(t, err)

	changed, err = volume.Write(dir, volume.Files{"a": []byte("2"), "deep/b": []byte("1"), "new": nil})
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, "2", content(t, dir, "a"))
	require.Equal(t, "1", content(t, dir, "deep/b"))
	require.Empty(t, content(t, dir, "new"))
	require.NoFileExists(t, filepath.Join(dir, "gone"))
	require.NoDirExists(t, filepath.Join(dir, before), "the old content is removed")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 5) // three names, ..data and its folder
}

func TestTheSameFilesChangeNothing(t *testing.T) {
	dir := t.TempDir()
	files := volume.Files{"a": []byte("1"), "deep/b": []byte("2")}
	_, err := volume.Write(dir, files)
	require.NoError(t, err)
	before, err := os.Readlink(filepath.Join(dir, "..data"))
	require.NoError(t, err)
	changed, err := volume.Write(dir, files)
	require.NoError(t, err)
	require.False(t, changed)
	after, err := os.Readlink(filepath.Join(dir, "..data"))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestAnEmptyVolumeIsAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	_, err := volume.Write(dir, volume.Files{})
	require.NoError(t, err)
	require.DirExists(t, dir)
}

func TestNobodyElseCanReadTheFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	_, err := volume.Write(dir, volume.Files{"deep/secret": []byte("x")})
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		if entry.Type()&fs.ModeSymlink == 0 {
			require.Zero(t, info.Mode().Perm()&0o077, path)
		}
		return nil
	}))
}

func TestPathsThatLeaveTheVolumeAreRefused(t *testing.T) {
	outer := t.TempDir()
	for name, path := range map[string]string{
		"parent": "../x", "hidden parent": "a/../../x", "absolute": "/x", "kubelet's own name": "..data", "nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := volume.Write(filepath.Join(outer, "v"), volume.Files{path: []byte("x")})
			require.ErrorContains(t, err, "leaves its volume")
			require.NoFileExists(t, filepath.Join(outer, "x"))
		})
	}
}
