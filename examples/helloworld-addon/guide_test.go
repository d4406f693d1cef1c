// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shown matches the code in the guide: Go, or YAML that is a template.
var shown = regexp.MustCompile("(?ms)^```(go|yaml)\n(.*?)^```$")

func TestTheGuideShowsThisProgram(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/addon.md")
	require.NoError(t, err)
	var sources []string
	for _, pattern := range []string{
		"*.go",
		"*.yaml",
		"manifests/*.yaml",
		"../../pkg/addonkit/runner/example_test.go",
		"../../test/integration/addonkit/look_test.go",
		"../../test/integration/addonkit/tenant/*.yaml",
	} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			sources = append(sources, string(text))
		}
	}
	blocks := 0
	for _, m := range shown.FindAllStringSubmatch(string(guide), -1) {
		if strings.HasPrefix(m[2], "# small.yaml\n") {
			continue // it is applied by the test of the commands
		}
		blocks++
		require.True(t, strings.Contains(strings.Join(sources, "\n"), m[2]), "nothing has\n%s", m[2])
	}
	require.GreaterOrEqual(t, blocks, 10)
}
