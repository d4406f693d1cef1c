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
		rows = append(rows, rowsOf(t, page, "| what must hold |")...)
	}
	require.NotEmpty(t, rows)
	return rows
}

// rowsOf returns the rows of the tables of a page whose heads begin so.
func rowsOf(t *testing.T, page, head string) (rows []row) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	inside := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, head):
			inside = true
		case !strings.HasPrefix(line, "|"):
			inside = false
		case inside && strings.HasPrefix(line, "| "):
			cells := strings.Split(strings.Trim(line, "|"), " | ")
			require.Len(t, cells, 3, "%s: a line has three cells: %s", page, line)
			rows = append(rows, row{page, strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])})
		}
	}
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

// namer holds the tests of the folders that were named.
type namer map[string]map[string]bool

// check requires the tests that a row names to exist, and returns their names.
func (n namer) check(t *testing.T, r row) (out []string) {
	t.Helper()
	for _, m := range namedTests.FindAllStringSubmatch(r.tests, -1) {
		if n[m[1]] == nil {
			n[m[1]] = defined(t, m[1])
		}
		for _, name := range testName.FindAllString(m[2], -1) {
			require.True(t, n[m[1]][name], "%s: %q names %s, which %s does not have", r.page, r.what, name, m[1])
			out = append(out, name)
		}
	}
	return out
}

func TestEveryLineOfAContractNamesTestsThatExist(t *testing.T) {
	named := namer{}
	for _, r := range contractRows(t) {
		require.True(t, slices.ContainsFunc(states, func(s string) bool { return r.state == s }),
			"%s: %q has the state %q; only %v exist", r.page, r.what, r.state, states)
		found := named.check(t, r)
		if r.state == "not here" {
			require.Empty(t, found, "%s: %q is not here and has tests", r.page, r.what)
			require.NotEmpty(t, r.tests, "%s: %q does not say why it is not here", r.page, r.what)
			continue
		}
		require.NotEmpty(t, found, "%s: %q names no test", r.page, r.what)
	}
}
