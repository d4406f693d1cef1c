// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// commandLine matches what only a program knows: a command of the plugin, or a flag.
var commandLine = regexp.MustCompile(`kubectl ocm|(?:^|[^\w-])(?:--[a-z][a-z-]*|-[a-z]\b(?:[^-]|$))`)

// grantsFile writes plain kubectl commands into a condition, for administrators who have
// to grant what the hub itself may not.
const grantsFile = "pkg/addonkit/registration/permit.go"

// commandLines counts the strings and comments of the libraries that name no command
// line: only the program that prints a command words it.
func commandLines(t *tree) figure {
	var findings []finding
	total := 0
	look := func(f *sourceFile, pos token.Pos, text string) {
		total++
		if found := commandLine.FindString(text); found != "" {
			findings = append(findings, finding{f.Path, t.line(pos), fmt.Sprintf("%q belongs to a command line", strings.TrimSpace(found))})
		}
	}
	for _, f := range t.counted() {
		if !strings.HasPrefix(f.Path, "pkg/") || strings.HasPrefix(f.Path, apiFolder) || f.Path == grantsFile {
			continue
		}
		for _, group := range f.Syntax.Comments {
			look(&f, group.Pos(), group.Text())
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					text = literal.Value
				}
				look(&f, literal.Pos(), text)
			}
			return true
		})
	}
	return share("no command lines", total, findings)
}
