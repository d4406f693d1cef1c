// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// apiFolder holds the API types. All their fields must have a comment, because "kubectl
// explain" prints it.
const apiFolder = "pkg/apis/"

// packageComments counts the packages that have a package comment.
func packageComments(t *tree) figure {
	var findings []finding
	packages := t.packages()
	for dir, files := range packages {
		if !slices.ContainsFunc(files, func(f sourceFile) bool { return f.Syntax.Doc.Text() != "" }) {
			findings = append(findings, finding{File: dir, Text: "package " + files[0].Syntax.Name.Name + " has no comment"})
		}
	}
	return share("package comments", len(packages), findings)
}

// exportedComments counts the exported symbols with a comment of their own or of their
// group.
func exportedComments(t *tree) figure {
	var findings []finding
	total := 0
	for _, f := range t.counted() {
		for _, s := range exportedSymbols(f.Syntax) {
			total++
			if !s.documented {
				findings = append(findings, finding{File: f.Path, Line: t.line(s.pos), Text: s.name + " has no comment"})
			}
		}
	}
	return share("exported comments", total, findings)
}

// symbol is one exported name of a package.
type symbol struct {
	name       string
	pos        token.Pos
	documented bool
}

func exportedSymbols(file *ast.File) []symbol {
	var symbols []symbol
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && exportedReceiver(d) {
				symbols = append(symbols, symbol{d.Name.Name, d.Pos(), d.Doc.Text() != ""})
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				symbols = append(symbols, specSymbols(d, spec)...)
			}
		}
	}
	return symbols
}

// exportedReceiver is false for a method of an unexported type, which the package's
// documentation does not show.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	return ast.IsExported(receiverName(d.Recv.List[0].Type))
}

func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func specSymbols(d *ast.GenDecl, spec ast.Spec) []symbol {
	group := d.Doc.Text() != ""
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			return []symbol{{s.Name.Name, s.Pos(), s.Doc.Text() != "" || (group && !d.Lparen.IsValid())}}
		}
	case *ast.ValueSpec:
		var symbols []symbol
		for _, n := range s.Names {
			if n.IsExported() {
				documented := group || s.Doc.Text() != "" || s.Comment.Text() != ""
				symbols = append(symbols, symbol{n.Name, n.Pos(), documented})
			}
		}
		return symbols
	}
	return nil
}

// fieldComments counts the named fields of the API types that have a comment.
func fieldComments(t *tree) figure {
	var findings []finding
	total := 0
	for _, f := range t.counted() {
		if !strings.HasPrefix(f.Path, apiFolder) {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				if len(field.Names) == 0 || !field.Names[0].IsExported() {
					continue
				}
				total++
				if prose(field.Doc) == "" {
					findings = append(findings, finding{File: f.Path, Line: t.line(field.Pos()), Text: "API field " + field.Names[0].Name + " has no comment"})
				}
			}
			return true
		})
	}
	return share("API field comments", total, findings)
}

// prose is a comment without the markers of the generators ("+optional").
func prose(c *ast.CommentGroup) string {
	var text []string
	for _, line := range strings.Split(c.Text(), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "+") {
			text = append(text, line)
		}
	}
	return strings.Join(text, " ")
}
