// SPDX-License-Identifier: Apache-2.0

package check

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The catalogue has every code of the library exactly once.
func TestTheCatalogueHasEveryCode(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../pkg/fleet/check/code.go", nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var want, have []string
	ast.Inspect(f, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok {
			code, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			want = append(want, code)
		}
		return true
	})
	for _, e := range catalogue {
		for what, text := range map[string]string{"meaning": e.Text, "sign": e.seen(), "fix": e.fix()} {
			require.NotEmpty(t, text, "the %s of %s", what, e.Code)
		}
		have = append(have, e.Code)
	}
	require.ElementsMatch(t, want, have)
	require.Len(t, remedies, len(have))
}
