// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// apis is the folder of the Go types.
const apis = "../../pkg/apis"

// sources calls visit with every Go file of pkg/apis except tests.
func sources(t *testing.T, mode parser.Mode, visit func(path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(apis, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, mode)
		if err == nil {
			visit(path, file)
		}
		return err
	})
	require.NoError(t, err)
}

// TestTypesDependOnMachineryOnly makes sure that any program, such as the agent or a
// third party's, can import the types without a client library.
func TestTypesDependOnMachineryOnly(t *testing.T) {
	allowed := []string{"k8s.io/apimachinery/", "k8s.io/api/", "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/"}
	seen := 0
	sources(t, parser.ImportsOnly, func(path string, file *ast.File) {
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			seen++
			standard := !strings.Contains(strings.SplitN(name, "/", 2)[0], ".")
			require.True(t, standard || slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(name, prefix) }),
				"%s imports %s", path, name)
		}
	})
	require.Greater(t, seen, 50)
}

// TestWireStrings looks for the strings that peers use among the constants of pkg/apis.
// Changing or removing one breaks peers. Strings that only this project uses are not in
// the list.
func TestWireStrings(t *testing.T) {
	text, err := os.ReadFile("testdata/wire_strings.tsv")
	require.NoError(t, err)
	wanted := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		columns := strings.Split(line, "\t")
		require.Len(t, columns, 2, line)
		value, err := strconv.Unquote(columns[1])
		require.NoError(t, err, line)
		wanted[columns[0]] = value
	}
	have := map[string]string{}
	sources(t, parser.SkipObjectResolution, func(path string, file *ast.File) {
		folder, err := filepath.Rel(apis, filepath.Dir(path))
		require.NoError(t, err)
		for _, declaration := range file.Decls {
			if list, ok := declaration.(*ast.GenDecl); ok && list.Tok == token.CONST {
				constants(t, filepath.ToSlash(folder), list, have)
			}
		}
	})
	require.Greater(t, len(wanted), 300)
	for name, value := range wanted {
		require.Equal(t, value, have[name], name)
	}
}

// constants adds the exported string constants of a declaration.
func constants(t *testing.T, folder string, list *ast.GenDecl, into map[string]string) {
	t.Helper()
	for _, spec := range list.Specs {
		value := spec.(*ast.ValueSpec)
		for i, name := range value.Names {
			literal, ok := value.Values[i].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || !name.IsExported() {
				continue
			}
			text, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			into[folder+"."+name.Name] = text
		}
	}
}
