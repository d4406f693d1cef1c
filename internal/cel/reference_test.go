// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"testing"

	gocel "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/cel"
)

// counting is an environment with the function count of any value, which costs 40.
func counting() *cel.Environment {
	return dynamic().Extend(gocel.Function("count", gocel.MemberOverload("count_of", []*gocel.Type{gocel.DynType, gocel.StringType}, gocel.IntType,
		gocel.BinaryBinding(func(ref.Val, ref.Val) ref.Val { return types.Int(1) })))).
		Charging(map[string]cel.Cost{"count_of": func(args []ref.Val, result ref.Val) uint64 {
			return 39*uint64(len(args)-1) + uint64(result.(types.Int))
		}})
}

func TestWhatAnExpressionReads(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]cel.Reference{
		`1 == 1`:                           {},
		`object.a.b == 1`:                  {Paths: [][]string{{"a", "b"}}},
		`object["a"].?b["c d"].hasValue()`: {Paths: [][]string{{"a", "b", "c d"}}},
		`has(object.a.b) && object[?"c"] == optional.none()`: {Paths: [][]string{{"a", "b"}, {"c"}}},
		`object.a[object.b] == 1`:                            {Paths: [][]string{{"a"}, {"b"}}},
		`object.a.exists(x, x.y == object.z)`:                {Paths: [][]string{{"a"}, {"z"}}},
		`object == {} || [object.a] == []`:                   {Whole: true, Paths: [][]string{{"a"}}},
		`object.exists(k, k == "a")`:                         {Whole: true},
		`{"a": object.b} == {}`:                              {Paths: [][]string{{"b"}}},
		`object.count("a") == 1`: {
			Calls: []cel.Call{{Function: "count", Text: "a", Constant: true}},
		},
		`object.count(object.a) == 1`: {
			Paths: [][]string{{"a"}},
			Calls: []cel.Call{{Function: "count"}},
		},
		`object.a.count("b") == 1`: {Paths: [][]string{{"a"}}},
	} {
		p, err := counting().Compile(expression, gocel.BoolType)
		require.NoError(t, err, expression)
		require.Equal(t, want, p.Reads("object"), expression)
		require.Equal(t, cel.Reference{}, p.Reads("other"), expression)
	}
}

func TestFunctionsOfTheCallerCostWhatTheySay(t *testing.T) {
	t.Parallel()
	p, err := counting().Compile(`object.count("a") == 1`, gocel.BoolType)
	require.NoError(t, err)
	budget := cel.Budget{Limit: 100}
	for range 2 {
		got, err := p.Bool(t.Context(), &budget, object())
		require.NoError(t, err)
		require.True(t, got)
	}
	require.Equal(t, uint64(84), budget.Spent(), "40 for the call, one each for variable and comparison")
	_, err = p.Bool(t.Context(), &budget, object())
	require.ErrorIs(t, err, cel.ErrBudget)
}
