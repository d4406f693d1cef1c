// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// states are the states that a row may have.
var states = []string{"as written", "changed", "not here"}

// namedTests matches a folder followed by names of tests.
var (
	namedTests = regexp.MustCompile("`([a-z0-9/._-]+)`((?:,? (?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+)+)")
	testName   = regexp.MustCompile("(?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+")
	definition = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+)\(`)
)

// row is one row of a table in docs/contracts.
type row struct{ page, what, state, tests string }

func contractRows(t *testing.T) []row {
	t.Helper()
	pages, err := filepath.Glob("contracts/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	var rows []row
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what must hold |") {
				continue
			}
			cells := strings.Split(strings.Trim(line, "|"), " | ")
			require.Len(t, cells, 3, "%s: a line has three cells: %s", page, line)
			rows = append(rows, row{page, strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])})
		}
	}
	require.NotEmpty(t, rows)
	return rows
}

// defined returns the tests of a folder, whatever their build tags.
func defined(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(folder), "*_test.go"))
	require.NoError(t, err)
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range definition.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
	}
	return names
}

func TestEveryLineOfAContractNamesTestsThatExist(t *testing.T) {
	folders := map[string]map[string]bool{}
	for _, r := range contractRows(t) {
		require.True(t, slices.ContainsFunc(states, func(s string) bool { return r.state == s }),
			"%s: %q has the state %q; only %v exist", r.page, r.what, r.state, states)
		found := namedTests.FindAllStringSubmatch(r.tests, -1)
		if r.state == "not here" {
			require.Empty(t, found, "%s: %q is not here and has tests", r.page, r.what)
			require.NotEmpty(t, r.tests, "%s: %q does not say why it is not here", r.page, r.what)
			continue
		}
		require.NotEmpty(t, found, "%s: %q names no test", r.page, r.what)
		for _, m := range found {
			have, read := folders[m[1]]
			if !read {
				have = defined(t, m[1])
				folders[m[1]] = have
			}
			for _, name := range testName.FindAllString(m[2], -1) {
				require.True(t, have[name], "%s: %q names %s, which %s does not have", r.page, r.what, name, m[1])
			}
		}
	}
}
