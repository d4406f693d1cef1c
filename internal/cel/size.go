// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"strings"

	gocel "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// Bounds of the values that an expression builds. CEL counts a step after it is done, and
// a list that contains one list many times, which contains another many times, costs next
// to nothing until something compares or prints it.
const (
	// maxWeight bounds a list or map: one for each value in it at any depth, plus one for
	// every sixteen bytes of text.
	maxWeight = 100_000
	// maxText bounds the results of replace and join, in bytes.
	maxText = 1 << 20
)

// smallValues bounds the results of constructors and additions in an expression.
func smallValues(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch step := i.(type) {
	case interpreter.InterpretableConst:
		return i, nil
	case interpreter.InterpretableConstructor:
		return constructor{step}, nil
	case interpreter.InterpretableCall:
		if step.Function() == operators.Add {
			return addition{step}, nil
		}
	}
	return i, nil
}

type constructor struct {
	interpreter.InterpretableConstructor
}

func (c constructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return small(c.InterpretableConstructor.Exec(frame))
}

func (c constructor) Eval(activation interpreter.Activation) ref.Val {
	return small(c.InterpretableConstructor.Eval(activation))
}

type addition struct{ interpreter.InterpretableCall }

func (a addition) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return small(a.InterpretableCall.Exec(frame))
}

func (a addition) Eval(activation interpreter.Activation) ref.Val {
	return small(a.InterpretableCall.Eval(activation))
}

// small returns the value, or an error if it is a list or map that is too large.
func small(value ref.Val) ref.Val {
	switch value.(type) {
	case traits.Lister, traits.Mapper:
		if weigh(value, maxWeight) <= 0 {
			return types.NewErr("a list or map is too large")
		}
	}
	return value
}

// weigh subtracts the weight of a value from what is left, and stops at zero.
func weigh(value ref.Val, left int) int {
	left--
	switch v := value.(type) {
	case types.String:
		left -= len(v) / 16
	case types.Bytes:
		left -= len(v) / 16
	case *types.Optional:
		if v.HasValue() {
			left = weigh(v.GetValue(), left)
		}
	case traits.Lister:
		for it := v.Iterator(); left > 0 && it.HasNext() == types.True; {
			left = weigh(it.Next(), left)
		}
	case traits.Mapper:
		for it := v.Iterator(); left > 0 && it.HasNext() == types.True; {
			key := it.Next()
			left = weigh(v.Get(key), weigh(key, left))
		}
	}
	return left
}

// smallStrings returns bounded replacements for functions whose result may be as long as
// the product of the lengths of their arguments.
func smallStrings() []gocel.EnvOption {
	text, texts := gocel.StringType, gocel.ListType(gocel.StringType)
	return []gocel.EnvOption{
		gocel.Function("replace",
			gocel.MemberOverload("string_replace_string_string", []*gocel.Type{text, text, text}, text,
				gocel.FunctionBinding(func(args ...ref.Val) ref.Val { return replace(args, -1) })),
			gocel.MemberOverload("string_replace_string_string_int", []*gocel.Type{text, text, text, gocel.IntType}, text,
				gocel.FunctionBinding(func(args ...ref.Val) ref.Val { return replace(args, args[3].(types.Int)) })),
		),
		gocel.Function("join",
			gocel.MemberOverload("list_join", []*gocel.Type{texts}, text,
				gocel.UnaryBinding(func(list ref.Val) ref.Val { return join(list, "") })),
			gocel.MemberOverload("list_join_string", []*gocel.Type{texts, text}, text,
				gocel.BinaryBinding(func(list, separator ref.Val) ref.Val { return join(list, separator.(types.String)) })),
		),
	}
}

func replace(args []ref.Val, times types.Int) ref.Val {
	s, before, after := string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String))
	n := strings.Count(s, before)
	if times >= 0 {
		n = int(min(times, types.Int(n)))
	}
	if n > 0 && len(after) > len(before) && len(s)+n*(len(after)-len(before)) > maxText {
		return types.NewErr("a text is too long")
	}
	return types.String(strings.Replace(s, before, after, n))
}

func join(list ref.Val, separator types.String) ref.Val {
	var out strings.Builder
	between := ""
	for it := list.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		value := it.Next()
		text, ok := value.(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(value)
		}
		out.WriteString(between)
		out.WriteString(string(text))
		between = string(separator)
		if out.Len() > maxText {
			return types.NewErr("a text is too long")
		}
	}
	return types.String(out.String())
}
