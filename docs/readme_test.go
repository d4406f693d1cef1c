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

// transcripts has the output of commands, each after its command line.
const transcripts = "../test/integration/fleet/testdata/readme.golden"

// TestEveryCommandOfTheReadmeIsTyped: every command in a block of README.md is in the
// transcript from real clusters, or in a script.
func TestEveryCommandOfTheReadmeIsTyped(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	golden, err := os.ReadFile(transcripts)
	require.NoError(t, err)
	scripts, err := filepath.Glob("../plugins/testdata/script/*.txtar")
	require.NoError(t, err)
	typed := strings.ReplaceAll(string(golden), "$ kubectl ocm ", "kubectl-ocm ")
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		typed += "\n" + regexp.MustCompile(`(?m)^exec `).ReplaceAllString(string(text), "")
	}
	total := 0
	for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			words, ours := strings.CutPrefix(strings.TrimPrefix(line, "$ "), "kubectl ocm ")
			if !ours {
				continue
			}
			total++
			words, _, _ = strings.Cut(words, " #")
			require.Regexp(t, `(?m)^kubectl-ocm `+regexp.QuoteMeta(strings.TrimSpace(words))+`( |$)`, typed,
				"no test runs it: %s", words)
		}
	}
	require.GreaterOrEqual(t, total, 12)
}
