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

// Names of the overloads of our functions, by which their costs are charged.
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

// expressions is the environment of a predicate's CEL. All Schedulers of a process share
// it; it is built when the first expression is compiled.
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

// structure returns the cost of the maps and lists of a JSON value.
func structure(value any) (cost uint64) {
	switch v := value.(type) {
	case map[string]any:
		cost = costMap
		for _, inner := range v {
			cost += structure(inner)
		}
	case []any:
		cost = costList
		for _, inner := range v {
			cost += structure(inner)
		}
	}
	return cost
}

// scores returns the names and values of an AddOnPlacementScore of the cluster. A score
// that has expired is treated as missing.
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
