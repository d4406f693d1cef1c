// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Names inside a volume's folder, the same as kubelet's because programs rely on them.
const (
	dataLink    = "..data"
	dataPending = "..data_tmp"
	dataPattern = "..data-"
)

// Files is the content of a volume by relative path with slashes.
type Files map[string][]byte

// Write makes dir show exactly files. It reports whether anything changed.
// Paths that are not local, or start with "..", are refused.
func Write(dir string, files Files) (bool, error) {
	for path := range files {
		if !filepath.IsLocal(path) || strings.HasPrefix(path, "..") {
			return false, fmt.Errorf("writing volume file %q: the path leaves its volume", path)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	old, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err == nil && same(filepath.Join(dir, old), files) {
		return false, nil
	}
	if err := swap(dir, files); err != nil {
		return false, fmt.Errorf("writing volume: %w", err)
	}
	if err := link(dir, files); err != nil {
		return false, fmt.Errorf("linking volume: %w", err)
	}
	if old == "" {
		return true, nil
	}
	return true, os.RemoveAll(filepath.Join(dir, old))
}

// same reports whether folder holds exactly files.
func same(folder string, files Files) bool {
	seen := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		want, ok := files[filepath.ToSlash(name)]
		got, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !ok || !bytes.Equal(got, want) {
			return fs.ErrInvalid
		}
		seen++
		return nil
	})
	return err == nil && seen == len(files)
}

// swap writes files into a new folder and points ..data to it.
func swap(dir string, files Files) error {
	folder, err := os.MkdirTemp(dir, dataPattern)
	if err != nil {
		return err
	}
	for path, content := range files {
		target := filepath.Join(folder, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o600); err != nil {
			return err
		}
	}
	pending := filepath.Join(dir, dataPending)
	if err := os.Remove(pending); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(filepath.Base(folder), pending); err != nil {
		return err
	}
	return os.Rename(pending, filepath.Join(dir, dataLink))
}

// link creates one link for each top-level name and removes the links of names that are
// gone.
func link(dir string, files Files) error {
	want := map[string]bool{}
	for path := range files {
		name, _, _ := strings.Cut(path, "/")
		want[name] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, "..") || entry.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if want[name] {
			delete(want, name)
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for name := range want {
		if err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
