// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"math"
	"slices"
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

// sized is a location with the size that a budget bounds.
type sized struct {
	finding
	size int
}

// largest returns a figure for the largest size; the findings are those above the budget.
func largest(name string, budget int, all []sized) figure {
	most := 0
	var findings []finding
	for _, s := range all {
		most = max(most, s.size)
		if s.size > budget {
			findings = append(findings, s.finding)
		}
	}
	return figure{Name: name, Value: fmt.Sprint(most), Budget: fmt.Sprintf("<= %d", budget), Within: most <= budget, Findings: findings}
}

// functions measures each declared function or method with a body; measure also names the
// unit.
func functions(t *tree, measure func(*ast.FuncDecl) (int, string)) []sized {
	var found []sized
	for _, f := range t.counted() {
		for _, d := range f.Syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				size, unit := measure(fn)
				found = append(found, sized{finding{f.Path, t.line(fn.Type.Func), fmt.Sprintf("%s has %d %s", fn.Name.Name, size, unit)}, size})
			}
		}
	}
	return found
}

func functionLines(t *tree) []sized {
	return functions(t, func(fn *ast.FuncDecl) (int, string) { return t.line(fn.End()) - t.line(fn.Type.Func) + 1, "lines" })
}

// longestFunction measures the longest function.
func longestFunction(t *tree) figure {
	return largest("longest function", maxFunction, functionLines(t))
}

// functionPercentile measures the length that 95 % of the functions do not exceed; its
// findings are the functions above the budget.
func functionPercentile(t *tree) figure {
	all := functionLines(t)
	f := largest("function lines, 95th percentile", maxFunctionPercentile, all)
	var lengths []int
	for _, s := range all {
		lengths = append(lengths, s.size)
	}
	value := percentile95(lengths)
	f.Value, f.Within = fmt.Sprint(value), value <= maxFunctionPercentile
	return f
}

// percentile95 returns the nearest-rank 95th percentile, 0 for no values.
func percentile95(values []int) int {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[int(math.Ceil(0.95*float64(len(values))))-1]
}

// parameters measures the largest number of parameters of a function.
func parameters(t *tree) figure {
	return largest("parameters", maxParameters, functions(t, func(fn *ast.FuncDecl) (int, string) { return fn.Type.Params.NumFields(), "parameters" }))
}

// fileLength measures the longest file.
func fileLength(t *tree) figure {
	var all []sized
	for _, f := range t.counted() {
		all = append(all, sized{finding{f.Path, 0, fmt.Sprintf("%d lines", f.lines())}, f.lines()})
	}
	return largest("longest file", maxFile, all)
}
