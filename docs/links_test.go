// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	quoted  = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// TestLinksLeadSomewhere checks the links to files and headings in the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	files := []string{"../README.md", "../CONTRIBUTING.md", "../SECURITY.md"}
	for _, pattern := range []string{"*.md", "*/*.md", "../examples/*/README.md", "../config/helm/*/README.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	total := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(quoted.ReplaceAllString(string(text), "code"), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			total++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), filepath.FromSlash(path))
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s links to %s", file, m[1])
			if anchor != "" {
				require.Contains(t, anchors(t, target), anchor, "%s links to %s", file, m[1])
			}
		}
	}
	require.Greater(t, total, 100)
}

// anchors returns the anchors of a page's headings.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []string
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		out = append(out, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}
