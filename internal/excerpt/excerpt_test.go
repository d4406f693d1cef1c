// SPDX-License-Identifier: Apache-2.0

package excerpt_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

func TestTextsAreCut(t *testing.T) {
	for text, want := range map[string]struct{ of, within string }{
		"":            {"", ""},
		"short":       {"short", "short"},
		"as long":     {"as long", "as long"},
		"much longer": {"much lo...", "much..."},
		"ääää":        {"äää...", "ää..."},
		"a\xffb":      {"ab", "ab"},
	} {
		require.Equal(t, want.of, excerpt.Of(text, 7), text)
		require.Equal(t, want.within, excerpt.Within(text, 7), text)
		require.LessOrEqual(t, len(excerpt.Within(text, 7)), 7)
		require.True(t, utf8.ValidString(excerpt.Of(text, 1)))
	}
	require.Equal(t, "...", excerpt.Within("longer", 2), "dots are not cut")
}
