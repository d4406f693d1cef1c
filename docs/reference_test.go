// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// spoken matches what a page sets in backquotes.
	spoken = regexp.MustCompile("`([^`\n]+)`")
	// conditionsHead is the header of a table of conditions.
	conditionsHead = "| condition | status | reason | when |"
	// ourKeys matches the API's labels, annotations and finalizers in a page.
	ourKeys = regexp.MustCompile("`([a-z0-9.-]*open-cluster-management\\.io/[A-Za-z0-9.-]*)`")
)

// referencePages returns the text of each page by file name.
func referencePages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("reference/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	pages := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		pages[filepath.Base(file)] = string(text)
	}
	return pages
}

// sources returns the text of all Go files below the folders, except tests.
func sources(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", folder), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			all.Write(text)
			return err
		}))
	}
	return all.String()
}

// constants returns the names of the Go constants for condition types and reasons, by
// value.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../pkg/apis/*/v*/*.go")
	require.NoError(t, err)
	found := map[string][]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			name, literal := spec.Names[0].Name, spec.Values[0]
			value, ok := literal.(*ast.BasicLit)
			if !ok || !strings.HasPrefix(name, "Condition") && !strings.HasPrefix(name, "Reason") || strings.HasPrefix(name, "ConditionRuleType") {
				return true
			}
			text, err := strconv.Unquote(value.Value)
			require.NoError(t, err)
			found[text] = append(found[text], name)
			return true
		})
	}
	require.Greater(t, len(found), 100)
	return found
}

// TestTheReferenceKnowsEveryConditionAndReason: every condition and reason that a user
// may find in an object is documented.
func TestTheReferenceKnowsEveryConditionAndReason(t *testing.T) {
	documented := map[string]bool{}
	for _, page := range referencePages(t) {
		for _, m := range spoken.FindAllStringSubmatch(page, -1) {
			documented[m[1]] = true
		}
	}
	for value, names := range constants(t) {
		require.True(t, documented[value], "docs/reference does not mention %s (%s of pkg/apis)", value, strings.Join(names, ", "))
	}
}

// TestTheReferenceTellsOfNothingThatIsNotSet checks that code sets every condition and
// reason in the tables of conditions.
func TestTheReferenceTellsOfNothingThatIsNotSet(t *testing.T) {
	code, known := sources(t, "controllers", "internal", "pkg/addonkit"), constants(t)
	isSet := func(value string) bool {
		for _, name := range known[value] {
			if regexp.MustCompile(`\.` + name + `\b`).MatchString(code) {
				return true
			}
		}
		return strings.Contains(code, strconv.Quote(value))
	}
	total := 0
	for file, page := range referencePages(t) {
		inside := false
		for line := range strings.Lines(page) {
			if !strings.HasPrefix(line, "| ") || strings.TrimSpace(line) == conditionsHead {
				inside = strings.TrimSpace(line) == conditionsHead || inside && strings.HasPrefix(line, "|")
				continue
			}
			if !inside {
				continue
			}
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			require.Len(t, cells, 4, "%s: %s", file, line)
			for _, cell := range []string{cells[0], cells[2]} {
				for _, m := range spoken.FindAllStringSubmatch(cell, -1) {
					total++
					require.True(t, isSet(m[1]), "%s documents %s, which nothing sets", file, m[1])
				}
			}
		}
	}
	require.Greater(t, total, 150)
}

// TestTheKeysOfTheReferenceExist compares labels, annotations and finalizers with the
// constants of the API.
func TestTheKeysOfTheReferenceExist(t *testing.T) {
	api := sources(t, "pkg/apis")
	total := 0
	for file, page := range referencePages(t) {
		for _, m := range ourKeys.FindAllStringSubmatch(page, -1) {
			total++
			require.Contains(t, api, strconv.Quote(m[1]), "%s names the key %s", file, m[1])
		}
	}
	require.Greater(t, total, 50)
}

// TestEveryFeatureGateIsOnItsPage compares the feature gates of hub and agent with the
// pages.
func TestEveryFeatureGateIsOnItsPage(t *testing.T) {
	pages := referencePages(t)
	for page, file := range map[string]string{
		"clustermanager.md": "../controllers/operator/clustermanager/features.go", "klusterlet.md": "../controllers/registration/agent/gates.go",
	} {
		code, err := os.ReadFile(file)
		require.NoError(t, err)
		gates := regexp.MustCompile(`(?m)^\s*[gG]ate\w+\s*= "(\w+)"`).FindAllStringSubmatch(string(code), -1)
		require.Greater(t, len(gates), 5)
		for _, gate := range gates {
			require.Contains(t, pages[page], "`"+gate[1]+"`", page)
		}
	}
}

// TestEveryKindHasItsPage compares the definitions with the pages and the index.
func TestEveryKindHasItsPage(t *testing.T) {
	definitions, err := filepath.Glob("../config/crd/*.yaml")
	require.NoError(t, err)
	pages := referencePages(t)
	for _, file := range definitions {
		group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
		if group == "about.k8s.io" {
			continue // read from managed clusters, never served by the hub
		}
		name := strings.TrimSuffix(plural, "s") + ".md"
		require.Contains(t, pages, name)
		require.Contains(t, pages["README.md"], "]("+name+")")
		full := plural + "." + group
		for _, part := range []string{
			"<!-- begin kind " + full + " -->", "<!-- begin fields " + full + " ", "## Example\n", "```yaml\n", "## Conditions\n", "## Behaviour\n", "## Fields\n",
		} {
			require.Contains(t, pages[name], part, name)
		}
	}
	require.Greater(t, len(definitions), 15)
}
