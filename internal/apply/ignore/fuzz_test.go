// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"context"
	"encoding/json"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/path"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// parseJQ reads an expression, where a variable hides the package.
var parseJQ = path.JQ

// oracle returns the result of gojq for del(path); ok is false if it fails.
func oracle(t testing.TB, path string) (any, bool) {
	t.Helper()
	query, err := gojq.Parse("del(" + path + "\n)")
	require.NoError(t, err, "gojq does not read %q, which we do", path)
	code, err := gojq.Compile(query)
	require.NoError(t, err, path)
	var in any
	require.NoError(t, json.Unmarshal([]byte(sample), &in))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	results := code.RunWithContext(ctx, in)
	var out any
	for {
		next, more := results.Next()
		if !more {
			return out, true
		}
		if _, failed := next.(error); failed {
			return nil, false
		}
		out = next
	}
}

// agrees compares a path with gojq. Paths that we reject to protect the agent, or whose
// errors we ignore, are skipped.
func agrees(t testing.TB, path string) {
	t.Helper()
	ours, err := left(t, workv1.IgnoreField{JQPathExpressions: []string{path}}, sample)
	if err != nil && strings.Contains(err.Error(), "at character") {
		return
	}
	theirs, ok := oracle(t, path)
	switch {
	case !ok:
		return
	case err != nil && strings.Contains(path, "?"):
		// gojq's "?" also suppresses failures of what comes after it.
		return
	case err != nil:
		for _, known := range []string{"always applied", "whole object", "does not name a field", "costs too much", "has no length", "contains cannot compare"} {
			if strings.Contains(err.Error(), known) {
				return
			}
		}
		require.NoError(t, err, path)
	}
	want, err := json.Marshal(theirs)
	require.NoError(t, err)
	got, err := json.Marshal(ours)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got), path)
}

func TestJQIsThatOfGojq(t *testing.T) {
	for path := range jqPaths {
		agrees(t, path)
		_, ok := oracle(t, path)
		require.True(t, ok, "gojq fails on %q, so it proves nothing", path)
	}
	words := []string{
		".spec", ".containers", ".name", ".env", ".replicas", ".list", ".missing", ".", "..", "[]", "[0]", "[-1]", `["name"]`, "|", "|", ",", "//", "?",
		"(", ")", "select(", "==", "!=", "<", "and", "or", "not", `"web"`, "1", "null", "true", `has("name")`, "length", "type", "first", "last",
		"any", "all", "any(", "IN(", `startswith("w")`, `test("w.b")`, "empty", "first(", ".image",
	}
	random := rand.New(rand.NewSource(1))
	read := 0
	for range 40_000 {
		var path strings.Builder
		path.WriteString(".spec")
		for range random.Intn(9) {
			path.WriteString(words[random.Intn(len(words))])
			if random.Intn(3) == 0 {
				path.WriteByte(' ')
			}
		}
		for range strings.Count(path.String(), "(") - strings.Count(path.String(), ")") {
			path.WriteByte(')')
		}
		if _, err := parseJQ(path.String()); err == nil {
			read++
			agrees(t, path.String())
		}
	}
	require.Greater(t, read, 2_000, "too few of the expressions can be read")
}

func FuzzExpressions(f *testing.F) {
	for path := range jqPaths {
		f.Add(path)
	}
	for _, s := range []string{".spec.containers[?(@.name=='web')].image", "{.spec..image}", "/spec/containers/0/a~1b", ".a[1:2]", `.a["\u00e9"]`, "$..x[*]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		agrees(t, text)
		for _, entry := range []workv1.IgnoreField{{JSONPaths: []string{text}}, {JSONPointers: []string{text}}} {
			_, err := left(t, entry, sample)
			if err != nil {
				require.Contains(t, err.Error(), ";", "the message %q has no fix", err)
			}
		}
	})
}

func TestAnExpressionCostsNoMoreThanItsBound(t *testing.T) {
	items := make([]any, 20_000)
	for i := range items {
		items[i] = map[string]any{"name": strings.Repeat("x", 100), "deep": map[string]any{"a": []any{"b"}}}
	}
	big := map[string]any{"spec": map[string]any{"items": items}}
	for _, path := range []string{
		"..|..|..|.x?", ".spec.items | select(.[] == .[])", ".spec.items | (.[],.[],.[]) | (.name,.name) | select(test(\"x.*x.*x\"))",
		".spec.items | (.[]|..) , (..|..) | select(. < 1)", "first(..|..|..|select(false))", ".spec.items[] | select(IN(..|..|empty))",
	} {
		root, err := parseJQ(path)
		require.NoError(t, err)
		e := &evaluator{}
		_, err = e.selected([]expression{{text: path, path: root}}, big)
		require.ErrorContains(t, err, "costs too much on this object; select fewer values", path)
		require.Less(t, e.steps, 2*maxSteps)
	}
	allocated := testing.AllocsPerRun(1, func() {
		root, err := parseJQ("..")
		require.NoError(t, err)
		_, err = (&evaluator{}).selected([]expression{{path: root}}, big)
		require.Error(t, err)
	})
	require.Less(t, allocated, float64(4*maxSteps))

	deep := map[string]any{"a": "b"}
	for range 5_000 {
		deep = map[string]any{"a": deep}
	}
	root, err := parseJQ(".a | select(.. == 1)")
	require.NoError(t, err)
	_, err = (&evaluator{}).selected([]expression{{text: "..", path: root}}, deep)
	require.ErrorContains(t, err, "nests deeper than 1000 levels")
}
