// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"math"
	"sort"
)

const (
	// maxFunction bounds one function, from "func" to its closing brace.
	maxFunction = 80
	// maxFunctionPercentile bounds the 95th percentile of all functions.
	maxFunctionPercentile = 42
	// maxParameters bounds the parameters of a declared function or method.
	maxParameters = 5
	// maxFile bounds the lines of one file.
	maxFile = 500
)

// function is one declared function or method with a body.
type function struct {
	file  sourceFile
	decl  *ast.FuncDecl
	line  int
	lines int
}

func functions(t *tree) []function {
	var found []function
	for _, f := range t.counted() {
		for _, d := range f.Syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				first := t.line(fn.Type.Func)
				found = append(found, function{f, fn, first, t.line(fn.End()) - first + 1})
			}
		}
	}
	return found
}

// longestFunction measures the longest function.
func longestFunction(t *tree) figure {
	longest := 0
	var findings []finding
	for _, f := range functions(t) {
		longest = max(longest, f.lines)
		if f.lines > maxFunction {
			findings = append(findings, finding{f.file.Path, f.line, fmt.Sprintf("%s has %d lines", f.decl.Name.Name, f.lines)})
		}
	}
	return atMost("longest function", longest, maxFunction, findings)
}

// functionPercentile measures the length that 95 % of the functions do not exceed; its
// findings are the functions above the budget.
func functionPercentile(t *tree) figure {
	var lengths []int
	var findings []finding
	for _, f := range functions(t) {
		lengths = append(lengths, f.lines)
		if f.lines > maxFunctionPercentile {
			findings = append(findings, finding{f.file.Path, f.line, fmt.Sprintf("%s has %d lines", f.decl.Name.Name, f.lines)})
		}
	}
	return atMost("function lines, 95th percentile", percentile95(lengths), maxFunctionPercentile, findings)
}

// percentile95 returns the nearest-rank 95th percentile, 0 for no values.
func percentile95(values []int) int {
	if len(values) == 0 {
		return 0
	}
	sort.Ints(values)
	return values[int(math.Ceil(0.95*float64(len(values))))-1]
}

// parameters measures the largest number of parameters of a function.
func parameters(t *tree) figure {
	most := 0
	var findings []finding
	for _, f := range functions(t) {
		n := f.decl.Type.Params.NumFields()
		most = max(most, n)
		if n > maxParameters {
			findings = append(findings, finding{f.file.Path, f.line, fmt.Sprintf("%s has %d parameters", f.decl.Name.Name, n)})
		}
	}
	return atMost("parameters", most, maxParameters, findings)
}

// fileLength measures the longest file.
func fileLength(t *tree) figure {
	longest := 0
	var findings []finding
	for _, f := range t.counted() {
		n := f.lines()
		longest = max(longest, n)
		if n > maxFile {
			findings = append(findings, finding{f.Path, 0, fmt.Sprintf("%d lines", n)})
		}
	}
	return atMost("longest file", longest, maxFile, findings)
}

// atMost returns a figure that must not exceed its budget.
func atMost(name string, value, budget int, findings []finding) figure {
	return figure{
		Name:     name,
		Value:    fmt.Sprint(value),
		Budget:   fmt.Sprintf("<= %d", budget),
		Within:   value <= budget,
		Findings: findings,
	}
}
