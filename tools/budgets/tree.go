// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// sourceFile is one Go file of the tree.
type sourceFile struct {
	// Path and Dir are below the root, with slashes; Dir is "." for the root.
	Path, Dir string
	Source    []byte
	Syntax    *ast.File
	// Generated files carry Go's "Code generated ... DO NOT EDIT." line.
	Generated bool
	// Test files are named _test.go.
	Test bool
}

// tree is every Go file below one root folder.
type tree struct {
	// Root is its folder.
	Root  string
	Files *token.FileSet
	All   []sourceFile
}

// load parses every Go file below root. Folders that Go itself ignores (testdata, vendor,
// names that start with a dot or an underscore) are skipped.
func load(root string) (*tree, error) {
	t := &tree{Root: root, Files: token.NewFileSet()}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && ignoredFolder(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || ignoredFile(d.Name()) {
			return nil
		}
		return t.add(root, name)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the tree %s: %w", root, err)
	}
	return t, nil
}

func ignoredFolder(name string) bool {
	return name == "testdata" || name == "vendor" || ignoredFile(name)
}

func ignoredFile(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func (t *tree) add(root, name string) error {
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(root, name)
	if err != nil {
		return err
	}
	relative = filepath.ToSlash(relative)
	syntax, err := parser.ParseFile(t.Files, relative, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.All = append(t.All, sourceFile{
		Path:      relative,
		Dir:       path.Dir(relative),
		Source:    source,
		Syntax:    syntax,
		Generated: ast.IsGenerated(syntax),
		Test:      strings.HasSuffix(relative, "_test.go"),
	})
	return nil
}

// counted returns the files that budgets count: neither generated nor tests.
func (t *tree) counted() []sourceFile {
	return slices.DeleteFunc(slices.Clone(t.All), func(f sourceFile) bool { return f.Generated || f.Test })
}

// packages returns the counted files by folder.
func (t *tree) packages() map[string][]sourceFile {
	byDir := map[string][]sourceFile{}
	for _, f := range t.counted() {
		byDir[f.Dir] = append(byDir[f.Dir], f)
	}
	return byDir
}

// line returns the line of a position.
func (t *tree) line(p token.Pos) int {
	return t.Files.Position(p).Line
}

// lines returns the number of lines of the file.
func (f sourceFile) lines() int {
	n := 0
	for range bytes.Lines(f.Source) {
		n++
	}
	return n
}
