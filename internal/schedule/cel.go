// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"encoding/json"
	"math"

	gocel "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/kubectl-ocm/kubectl-ocm/internal/cel"
)

// variable is the name of the ManagedCluster in expressions.
const variable = "managedCluster"

// scoresFunction is the name of the function that reads AddOnPlacementScores.
const scoresFunction = "scores"

// Names of our functions' overloads; costs are charged by them.
const (
	overloadScores    = "managed_cluster_scores_string"
	overloadParseJSON = "string_parse_json"
)

// Costs of our functions, in the units that CEL counts.
const (
	costScores, costScoreItem = 10, 31
	costMap, costList         = 30, 10
	costPerCharacter          = 0.1
)

// boolean is what an expression of a predicate must give.
var boolean = gocel.BoolType

// expressions are what a predicate's CEL may use. All Schedulers of a process share
// it; it is made when the first expression is compiled.
var expressions = cel.New(
	gocel.Variable(variable, gocel.MapType(gocel.StringType, gocel.DynType)),
	gocel.Function(scoresFunction, gocel.MemberOverload(overloadScores,
		[]*gocel.Type{gocel.MapType(gocel.StringType, gocel.DynType), gocel.StringType}, gocel.ListType(gocel.DynType),
		gocel.BinaryBinding(func(of, name ref.Val) ref.Val {
			c, ok := of.(*celCluster)
			if !ok {
				return types.NewErr("scores is a function of %s only", variable)
			}
			return c.scores(string(name.(types.String)))
		}))),
	gocel.Function("parseJSON", gocel.MemberOverload(overloadParseJSON,
		[]*gocel.Type{gocel.StringType}, gocel.DynType, gocel.UnaryBinding(parseJSON))),
).Charging(map[string]cel.Cost{
	overloadScores: func(_ []ref.Val, result ref.Val) uint64 {
		items, ok := result.(traits.Lister)
		if !ok {
			return costScores
		}
		return costScores + costScoreItem*uint64(items.Size().(types.Int))
	},
	overloadParseJSON: func(args []ref.Val, result ref.Val) uint64 {
		return uint64(math.Ceil(float64(len(args[0].(types.String)))*costPerCharacter)) + structure(result.Value())
	},
})

func parseJSON(text ref.Val) ref.Val {
	var value any
	if err := json.Unmarshal([]byte(text.(types.String)), &value); err != nil {
		return types.NewErr("reading JSON: %s", err.Error())
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

// structure is what the maps and lists of a JSON value cost.
func structure(value any) uint64 {
	switch v := value.(type) {
	case map[string]any:
		cost := uint64(costMap)
		for _, inner := range v {
			cost += structure(inner)
		}
		return cost
	case []any:
		cost := uint64(costList)
		for _, inner := range v {
			cost += structure(inner)
		}
		return cost
	}
	return 0
}

// scores is the list of name and value of an AddOnPlacementScore of the cluster.
// One that has expired is as good as none.
func (v *celCluster) scores(name string) ref.Val {
	score := v.cluster.score(name)
	if score == nil {
		return types.NewErr("failed to get score %.253s of cluster %s: there is none", name, v.cluster.name)
	}
	if until := score.Status.ValidUntil; until != nil {
		if !v.now.Before(until.Time) {
			return types.NewErr("failed to get score %.253s of cluster %s: it has expired", name, v.cluster.name)
		}
		if v.until.IsZero() || until.Time.Before(v.until) {
			v.until = until.Time
		}
	}
	items := make([]ref.Val, 0, len(score.Status.Scores))
	for _, one := range score.Status.Scores {
		items = append(items, types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{"name": one.Name, "value": int64(one.Value)}))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, items)
}
