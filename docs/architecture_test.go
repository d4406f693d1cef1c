// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// maxLines keeps the page short enough to be read to its end.
const maxLines = 300

// mapLine matches a row of the table of folders: the folder, and what it is.
var mapLine = regexp.MustCompile("^\\| `([^`]+)` \\| (\\S.*) \\|$")

func page(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// listed returns the folders of the section "Folders".
func listed(lines []string) []string {
	var folders []string
	inside := false
	for _, line := range lines {
		if strings.HasPrefix(line, "## ") {
			inside = line == "## Folders"
		}
		if m := mapLine.FindStringSubmatch(line); inside && m != nil {
			folders = append(folders, m[1])
		}
	}
	return folders
}

// packages returns the folders of the first two levels that hold Go code.
func packages(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	root := ".."
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")) {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() && strings.HasSuffix(name, ".go") {
			folder, err := filepath.Rel(root, filepath.Dir(name))
			if err != nil {
				return err
			}
			if levels := strings.Split(filepath.ToSlash(folder), "/"); len(levels) > 1 {
				found[strings.Join(levels[:2], "/")] = true
			}
		}
		return nil
	})
	require.NoError(t, err)
	var folders []string
	for folder := range found {
		folders = append(folders, folder)
	}
	return folders
}

func TestTheFoldersAreThoseOfTheTree(t *testing.T) {
	inMap, inTree := listed(page(t)), packages(t)
	require.NotEmpty(t, inMap)
	slices.Sort(inMap)
	slices.Sort(inTree)
	require.Empty(t, cmp.Diff(inTree, inMap),
		"docs/ARCHITECTURE.md needs one line for each folder of the first two levels (-) and no other line (+)")
}

// TestTablesHaveTheirHeads: a row after an empty line would not be rendered as a table.
func TestTablesHaveTheirHeads(t *testing.T) {
	lines := page(t)
	for i, line := range lines[1:] {
		require.False(t, lines[i] == "" && mapLine.MatchString(line), "line %d begins a table without a header", i+2)
	}
}

func TestPageStaysShort(t *testing.T) {
	require.LessOrEqual(t, len(page(t)), maxLines)
}

// TestFilesThatThePageNamesExist checks that the files named in backquotes exist.
func TestFilesThatThePageNamesExist(t *testing.T) {
	text := strings.Join(page(t), "\n")
	var names []string
	for _, m := range regexp.MustCompile("`((?:[a-z0-9_-]+/)+[a-z0-9_-]+\\.(?:go|yaml|md))`").FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	require.NotEmpty(t, names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		require.FileExists(t, filepath.Join("..", filepath.FromSlash(name)))
	}
}
