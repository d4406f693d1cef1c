// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"strings"

	gocel "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Reference is what an expression reads of a variable, as far as that is known without
// evaluating it. It never omits anything.
type Reference struct {
	// Whole is true if the expression may read any part of the variable.
	Whole bool
	// Paths are the fields that it reads, outermost first; anything below the end of a
	// path may be read as well.
	Paths [][]string
	// Calls are the functions that it calls on the variable itself.
	Calls []Call
}

// Call is a function that is called on a variable.
type Call struct {
	// Function is its name.
	Function string
	// Text is the only argument, and Constant whether it is a string literal of the
	// expression. Where it is not, the argument may be anything.
	Text     string
	Constant bool
}

// Reads returns what the expression reads of a variable.
func (p *Program) Reads(variable string) Reference { return p.reads[variable] }

func references(from *gocel.Ast) map[string]Reference {
	out := referrer{}
	out.visit(from.NativeRep().Expr())
	return out
}

type referrer map[string]Reference

// visit walks an expression and records each use of a name. Loop variables that hide a
// variable are recorded as if they were that variable.
func (r referrer) visit(e ast.Expr) {
	if name, path, ok := chain(e); ok {
		r.record(name, path)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		r.visit(e.AsSelect().Operand())
	case ast.CallKind:
		r.call(e.AsCall())
	case ast.ListKind:
		for _, one := range e.AsList().Elements() {
			r.visit(one)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.visit(entry.AsMapEntry().Key())
			r.visit(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			r.visit(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			r.visit(part)
		}
	}
}

func (r referrer) call(c ast.CallExpr) {
	if c.IsMemberFunction() {
		if name, path, ok := chain(c.Target()); ok && len(path) == 0 {
			call := Call{Function: c.FunctionName()}
			if len(c.Args()) == 1 {
				call.Text, call.Constant = text(c.Args()[0])
			}
			use := r[name]
			use.Calls = append(use.Calls, call)
			r[name] = use
		} else {
			r.visit(c.Target())
		}
	}
	for _, arg := range c.Args() {
		r.visit(arg)
	}
}

func (r referrer) record(name string, path []string) {
	use := r[name]
	if len(path) == 0 {
		use.Whole = true
	} else {
		use.Paths = append(use.Paths, path)
	}
	r[name] = use
}

// chain returns the variable and path of an expression such as a.b["c"].?d.
func chain(e ast.Expr) (name string, path []string, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return strings.TrimPrefix(e.AsIdent(), "."), nil, true
	case ast.SelectKind:
		name, path, ok = chain(e.AsSelect().Operand())
		return name, append(path, e.AsSelect().FieldName()), ok
	case ast.CallKind:
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			if key, constant := text(c.Args()[1]); constant {
				name, path, ok = chain(c.Args()[0])
				return name, append(path, key), ok
			}
		}
	}
	return "", nil, false
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	value, ok := e.AsLiteral().(types.String)
	return string(value), ok
}
