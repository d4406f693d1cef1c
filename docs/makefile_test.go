// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHelpExplainsEveryTarget compares the phony targets of the Makefile with
// the lines that "make help" prints.
func TestHelpExplainsEveryTarget(t *testing.T) {
	text, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	targets := regexp.MustCompile(`(?m)^\.PHONY: (\S+)$`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, targets)
	for _, m := range targets {
		require.Regexp(t, `(?m)^`+m[1]+`:.* ## \S`, string(text), "make help does not explain this target")
	}
}
