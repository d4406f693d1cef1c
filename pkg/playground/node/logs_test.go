// SPDX-License-Identifier: Apache-2.0

package node

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSeekTail(t *testing.T) {
	long := strings.Repeat("a long line of a log file\n", 1000)
	for name, tc := range map[string]struct {
		text  string
		lines int
		want  string
	}{
		"fewer lines than asked for": {"a\nb\n", 5, "a\nb\n"},
		"as many as asked for":       {"a\nb\n", 2, "a\nb\n"},
		"the last":                   {"a\nb\n", 1, "b\n"},
		"a last line without end":    {"a\nb", 1, "b"},
		"none":                       {"a\nb\n", 0, ""},
		"empty lines":                {"a\n\n\n", 2, "\n\n"},
		"an empty file":              {"", 3, ""},
		"across blocks":              {"first\n" + long, 1000, long},
	} {
		t.Run(name, func(t *testing.T) {
			file := strings.NewReader(tc.text)
			require.NoError(t, seekTail(file, tc.lines))
			got, err := io.ReadAll(file)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(got))
		})
	}
}
