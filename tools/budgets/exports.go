// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// public is the folder that other projects may import from; its exports are for them.
const public = "pkg/"

// spread marks what the names in use refer to, one step further, and reports whether
// anything was added.
func spread(declared []export, used map[[2]string]bool) (grown bool) {
	for _, e := range declared {
		me := [2]string{e.folder, e.name}
		for name := range e.says {
			named := [2]string{e.folder, name}
			switch {
			case used[me] == used[named]:
			case used[me]:
				used[named], grown = true, true
			case e.listed:
				used[me], grown = true, true
			}
		}
	}
	return grown
}

// framed reports whether all packages of a kind have a name in common, so that a reader
// of one package finds it in the others: the loops below controllers/, and the options of
// commands in plugins/.
func framed(e export) bool {
	switch {
	case strings.HasPrefix(e.folder, "controllers/"):
		return slices.Contains([]string{"Name", "Controller", "State", "Plan", "Decision", "Decide"}, e.name)
	case strings.HasPrefix(e.folder, "plugins/"):
		return strings.HasSuffix(e.name, "Options")
	}
	return false
}

// export is an exported name of a package that only this repository can import.
type export struct {
	folder, name string
	file         *sourceFile
	at           token.Pos
	// says names the types that its declaration shows: those of its signature, of its
	// exported fields and methods, or of a constant.
	says map[string]bool
	// listed is set for constants and variables that belong to their type, or to the
	// others of their declaration.
	listed bool
}

// unusedExports counts the exported names that no other package uses. A type is in use if
// an exported declaration in use names it. So are the constants of a type in use, those
// of a declaration of which one is in use, and the framed names. Methods are not counted:
// an interface may require them.
func unusedExports(t *tree) figure {
	declared := exports(t)
	folders := map[string]bool{}
	for _, f := range t.All {
		folders[f.Dir] = true
	}
	used := map[[2]string]bool{}
	for _, f := range t.All {
		for name := range selected(f, folders) {
			used[name] = true
		}
	}
	for _, e := range declared {
		if framed(e) {
			used[[2]string{e.folder, e.name}] = true
		}
	}
	for spread(declared, used) {
	}
	var findings []finding
	for _, e := range declared {
		if !used[[2]string{e.folder, e.name}] {
			findings = append(findings, finding{e.file.Path, t.line(e.at), fmt.Sprintf("%s is named in no other package", e.name)})
		}
	}
	return share("exports in use", len(declared), findings)
}

// exports returns the exported names that the rule applies to.
func exports(t *tree) []export {
	var out []export
	methods := map[[2]string][]*ast.FuncType{}
	for _, f := range t.counted() {
		if f.Syntax.Name.Name == "main" || strings.HasPrefix(f.Dir+"/", public) {
			continue
		}
		for _, d := range f.Syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				switch {
				case !d.Name.IsExported():
				case d.Recv == nil:
					out = append(out, export{f.Dir, d.Name.Name, &f, d.Pos(), typesIn(d.Type), false})
				default:
					for receiver := range typesIn(d.Recv.List[0].Type) {
						methods[[2]string{f.Dir, receiver}] = append(methods[[2]string{f.Dir, receiver}], d.Type)
					}
				}
			case *ast.GenDecl:
				out = append(out, specs(&f, d)...)
			}
		}
	}
	for _, e := range out {
		for _, method := range methods[[2]string{e.folder, e.name}] {
			maps.Copy(e.says, typesIn(method))
		}
	}
	return out
}

// specs returns the exported types, constants and variables of one declaration.
func specs(f *sourceFile, d *ast.GenDecl) []export {
	var out []export
	var carried ast.Expr
	beside := map[string]bool{}
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				out = append(out, export{f.Dir, s.Name.Name, f, s.Pos(), typesIn(s.Type), false})
			}
		case *ast.ValueSpec:
			if s.Type != nil || len(s.Values) > 0 {
				carried = s.Type
			}
			for _, name := range s.Names {
				if name.IsExported() {
					says := typesIn(carried)
					if len(says) == 0 && d.Tok == token.CONST {
						says = beside
						beside[name.Name] = true
					}
					out = append(out, export{f.Dir, name.Name, f, name.Pos(), says, len(says) > 0})
				}
			}
		}
	}
	return out
}

// typesIn returns the exported names of the same package in a type. Unexported fields do
// not count.
func typesIn(e ast.Expr) map[string]bool {
	out := map[string]bool{}
	if e == nil {
		return out
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false
		case *ast.Field:
			if len(n.Names) > 0 && !slices.ContainsFunc(n.Names, func(i *ast.Ident) bool { return i.IsExported() }) && !inSignature(e) {
				return false
			}
		case *ast.Ident:
			if n.IsExported() {
				out[n.Name] = true
			}
		}
		return true
	})
	return out
}

// inSignature reports whether a type is that of a function, whose parameter names do not
// matter to callers.
func inSignature(e ast.Expr) bool {
	_, is := e.(*ast.FuncType)
	return is
}

// selected returns the names that a file uses of packages in the given folders: the
// folder and the name. Tests outside their package count.
func selected(f sourceFile, folders map[string]bool) map[[2]string]bool {
	imported := map[string]string{}
	for _, i := range f.Syntax.Imports {
		folder, err := strconv.Unquote(i.Path.Value)
		for err == nil && folder != "" && !folders[folder] {
			_, folder, _ = strings.Cut(folder, "/")
		}
		if folder == "" {
			continue
		}
		name := path.Base(folder)
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = folder
	}
	out := map[[2]string]bool{}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && imported[x.Name] != "" {
			out[[2]string{imported[x.Name], s.Sel.Name}] = true
		}
		return true
	})
	return out
}
