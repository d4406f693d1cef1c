// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"slices"
	"strings"
)

const (
	// duplicateWindow is the number of consecutive code lines that must occur in another
	// file to count as duplicated.
	duplicateWindow = 8
	// maxDuplicated is the limit of the share of duplicated code lines, in percent; the
	// share must stay below it.
	maxDuplicated = 1.0
)

// codeLine is one line of code: its tokens joined by spaces, so that neither layout nor
// comments matter.
type codeLine struct {
	number int
	text   string
}

// codeLines returns the code lines of a file without its package clause and imports,
// which every file has to repeat.
func codeLines(f sourceFile) []codeLine {
	first := firstDeclaration(f.Syntax)
	files := token.NewFileSet()
	file := files.AddFile(f.Path, files.Base(), len(f.Source))
	var s scanner.Scanner
	s.Init(file, f.Source, func(token.Position, string) {}, 0)
	var lines []codeLine
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && literal == "\n" || file.Offset(pos) < first {
			continue
		}
		if literal == "" {
			literal = tok.String()
		}
		number := file.Line(pos)
		if n := len(lines); n > 0 && lines[n-1].number == number {
			lines[n-1].text += " " + literal
			continue
		}
		lines = append(lines, codeLine{number, literal})
	}
}

// firstDeclaration returns the offset of the first declaration that is not an import.
func firstDeclaration(file *ast.File) int {
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		return int(d.Pos() - file.FileStart)
	}
	return int(file.FileEnd - file.FileStart)
}

// place is a window of code lines: the index of its first line in a file.
type place struct {
	file, index int
}

// duplication measures the share of code lines inside a window that also occurs in
// another file.
func duplication(t *tree) figure {
	files := t.counted()
	code := make([][]codeLine, len(files))
	windows := map[string][]place{}
	total := 0
	for i, f := range files {
		code[i] = codeLines(f)
		total += len(code[i])
		for j := 0; j+duplicateWindow <= len(code[i]); j++ {
			key := windowText(code[i][j : j+duplicateWindow])
			windows[key] = append(windows[key], place{i, j})
		}
	}
	twins := twinLines(code, windows)
	duplicated := 0
	var findings []finding
	for i, f := range files {
		duplicated += len(twins[i])
		findings = append(findings, duplicateBlocks(files, code, twins, i, f)...)
	}
	percent := 0.0
	if total > 0 {
		percent = 100 * float64(duplicated) / float64(total)
	}
	return figure{
		Name:     "duplicated lines",
		Value:    fmt.Sprintf("%.2f %% of %d", percent, total),
		Budget:   fmt.Sprintf("< %.0f %%", maxDuplicated),
		Within:   percent < maxDuplicated,
		Findings: findings,
	}
}

func windowText(lines []codeLine) string {
	text := make([]string, len(lines))
	for i, l := range lines {
		text[i] = l.text
	}
	return strings.Join(text, "\n")
}

// twinLines maps, for each file, the index of each duplicated code line to one occurrence
// in another file.
func twinLines(code [][]codeLine, windows map[string][]place) []map[int]place {
	twins := make([]map[int]place, len(code))
	for i := range code {
		twins[i] = map[int]place{}
		for j := 0; j+duplicateWindow <= len(code[i]); j++ {
			same := windows[windowText(code[i][j:j+duplicateWindow])]
			other := slices.IndexFunc(same, func(p place) bool { return p.file != i })
			if other < 0 {
				continue
			}
			for k := range duplicateWindow {
				twins[i][j+k] = place{same[other].file, same[other].index + k}
			}
		}
	}
	return twins
}

// duplicateBlocks describes each run of duplicated lines of one file.
func duplicateBlocks(files []sourceFile, code [][]codeLine, twins []map[int]place, i int, f sourceFile) []finding {
	var findings []finding
	for j := 0; j < len(code[i]); j++ {
		twin, ok := twins[i][j]
		if !ok {
			continue
		}
		last := j
		for _, more := twins[i][last+1]; more; _, more = twins[i][last+1] {
			last++
		}
		findings = append(findings, finding{f.Path, code[i][j].number, fmt.Sprintf("%d code lines also in %s:%d",
			last-j+1, files[twin.file].Path, code[twin.file][twin.index].number)})
		j = last
	}
	return findings
}
