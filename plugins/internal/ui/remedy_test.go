// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/unjoin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
)

func TestWhatHelpsIsWorded(t *testing.T) {
	c := &fleet.Cluster{Context: "my hub", Config: &rest.Config{}}
	for _, tc := range []struct {
		fix  fleet.Fix
		want string
	}{
		{nil, ""},
		{fleet.Advice("wait"), "wait"},
		{naming.ListClusters.On(c), "kubectl ocm cluster list --context 'my hub'"},
		{naming.ListClusters.On(&fleet.Cluster{Config: &rest.Config{}}), "kubectl ocm cluster list"},
		{fleet.NameCA.On(c), "check the CA of context my hub, or name it by --certificate-authority"},
		{
			fleet.JoinCluster.With("cluster", "c1", "context", "", "hub", "a b"),
			"kubectl ocm join c1 --context <its context> --hub-context 'a b'",
		},
		{
			placement.LabelCluster.With("cluster", "", "labels", "a=1 b=$2"),
			"kubectl label managedcluster <cluster> --overwrite a=1 'b=$2'",
		},
		{
			placement.BindOneOf.With("set", "", "namespace", "shop", "sets", "eu, us"),
			"kubectl ocm clusterset bind <set> -n shop (there are eu, us)",
		},
		{unjoin.DetachByForce.With("cluster", "c1", "hub", "", "keep", ""),
			"kubectl ocm unjoin c1 --hub-only --force      when its agent no longer runs"},
		{unjoin.DetachByForce.With("cluster", "c1", "hub", "", "keep", "true"),
			"kubectl ocm unjoin c1 --hub-only --force --keep-works      when it does not come back"},
		{
			check.PutNameBack.With("klusterlet", "k", "patch", `{"spec":{}}`),
			`kubectl patch klusterlet k --type merge -p '{"spec":{}}'`,
		},
		{
			work.GrantRights.With("kind", "role", "role", "r", "verbs", "get", "resource", "pods", "namespace", "a", "account", "n:s"),
			"kubectl create role r --verb=get --resource=pods -n a && kubectl create rolebinding r --role=r --serviceaccount=n:s -n a      " +
				"or leave out --spoke-context to send the work anyway",
		},
	} {
		require.Equal(t, tc.want, Fix(tc.fix))
	}
	require.Equal(t, "none is; kubectl ocm work list", Told(fleet.Note{Text: "none is", Fix: naming.ListWorks.With()}, "; "))
	require.Equal(t, "none is", Told(fleet.Note{Text: "none is"}, "; "))
}

// library holds the remedies in the source of pkg/fleet and the packages below it.
type library struct {
	// codes are the values of the constants, by package and name.
	codes map[string]fleet.RemedyCode
	// uses are the remedies that the code creates, by position.
	uses map[string]fleet.Remedy
}

func readLibrary(t *testing.T) library {
	const root = "../../../pkg/fleet"
	l := library{codes: map[string]fleet.RemedyCode{}, uses: map[string]fleet.Remedy{}}
	files, all := token.NewFileSet(), []*ast.File{}
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		all = append(all, f)
		return err
	}))
	for _, f := range all {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && strings.HasSuffix(named(f, spec.Type), ".RemedyCode") {
				l.codes[f.Name.Name+"."+spec.Names[0].Name] = fleet.RemedyCode(text(t, spec.Values[0]))
			}
			return true
		})
	}
	for _, f := range all {
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				l.recordUse(t, f, call, files.Position(call.Pos()).String())
			}
			return true
		})
	}
	return l
}

// recordUse records a call of On or With of a code.
func (l *library) recordUse(t *testing.T, f *ast.File, call *ast.CallExpr, at string) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	code, ok := l.codes[named(f, method.X)]
	if !ok {
		return
	}
	values := call.Args
	if method.Sel.Name == "On" {
		values = values[1:]
	}
	require.Zero(t, len(values)%2, at)
	r := fleet.Remedy{Code: code, Values: map[string]string{}}
	for i := 0; i < len(values); i += 2 {
		r.Values[text(t, values[i])] = "x"
	}
	l.uses[at] = r
}

// named returns an identifier qualified with its package.
func named(f *ast.File, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return f.Name.Name + "." + e.Name
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			return of.Name + "." + e.Sel.Name
		}
	}
	return ""
}

func text(t *testing.T, e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	require.True(t, ok, "not a literal: %v", e)
	out, err := strconv.Unquote(literal.Value)
	require.NoError(t, err)
	return out
}

// Every code of the library has exactly one wording, and every wording has a code.
func TestEveryCodeHasAWording(t *testing.T) {
	require.ElementsMatch(t, slices.Collect(maps.Values(readLibrary(t).codes)), slices.Collect(maps.Keys(wordings)))
}

// Wherever the library creates a remedy, it gives exactly the values that its wording
// uses; and every remedy is created somewhere.
func TestEveryWordingGetsItsValues(t *testing.T) {
	l := readLibrary(t)
	made := map[fleet.RemedyCode]bool{}
	for at, r := range l.uses {
		made[r.Code] = true
		wording := wordings[r.Code]
		for _, value := range []string{"x", ""} {
			for key := range r.Values {
				r.Values[key] = value
				require.Contains(t, wording, "."+key, "%s gives %s, which the wording does not use", at, key)
			}
			_, err := fill(wording, r)
			require.NoError(t, err, at)
		}
	}
	for name, code := range l.codes {
		require.True(t, made[code], "nothing creates %s", name)
	}
	_, err := fill("kubectl logs {{.pod}}", fleet.ShowLogs.With("name", "x"))
	require.ErrorContains(t, err, `no entry for key "pod"`)
}

func TestShellWordsAreQuotedWhereNeeded(t *testing.T) {
	for in, want := range map[string]string{"hub": "hub", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "arn:aws:eks/x@y": "arn:aws:eks/x@y"} {
		require.Equal(t, want, ShellWord(in))
	}
}
