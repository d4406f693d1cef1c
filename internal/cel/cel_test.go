// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	gocel "github.com/google/cel-go/cel"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/cel"
)

func dynamic() *cel.Environment { return cel.New(gocel.Variable("object", gocel.DynType)) }

func object() map[string]any {
	return map[string]any{"object": map[string]any{
		"name": "web", "count": int64(3), "share": 0.5,
		"items": []any{map[string]any{"n": int64(1)}, map[string]any{"n": int64(2)}},
	}}
}

func boolean(t *testing.T, expression string) (bool, error) {
	t.Helper()
	p, err := dynamic().Compile(expression, gocel.BoolType)
	require.NoError(t, err, expression)
	return p.Bool(t.Context(), &cel.Budget{}, object())
}

// TestTheLibrariesAreThere uses at least one function of each library.
func TestTheLibrariesAreThere(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{
		`object.?absent.orValue(7) == 7 && optional.of(1).hasValue()`,
		`object.name.upperAscii() == 'WEB' && 'a,b'.split(',').join('-') == 'a-b' && 'aXa'.replace('a', 'bb') == 'bbXbb'`,
		`'aaa'.replace('a', 'b', 2) == 'bba' && 'abc'.replace('', '-', 2) == '-a-bc' && ['', 'x', ''].join('.') == '.x.' && ['a', 'b'].join() == 'ab'`,
		`'%s has %d'.format(['it', 3]) == 'it has 3' && 'abc'.reverse() == 'cba' && strings.quote('x') == '"x"'`,
		`[1, 2, 3].sum() == 6 && [2, 1].max() == 2 && [1, 2].isSorted() && ['a', 'b'].indexOf('b') == 1`,
		`'abc 123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2']`,
		`url('https://example.com:80/p?q=1').getHost() == 'example.com:80' && isURL('https://example.com')`,
		`quantity('1Gi').isGreaterThan(quantity('1M')) && isQuantity('20Mi') && !isQuantity('x')`,
		`ip('10.0.0.1').family() == 4 && isIP('::1')`,
		`cidr('10.0.0.0/8').containsIP(ip('10.1.2.3')) && cidr('10.0.0.0/8').prefixLength() == 8`,
		`!format.dns1123Label().validate('web').hasValue() && format.named('uuid').hasValue()`,
		`semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.2.3').minor() == 2`,
		`object.items.all(i, i.n > 0) && object.items.map(i, i.n * 2) == [2, 4] && has(object.count) && !has(object.absent)`,
		`object.count > 2.5 && object.share < 1`,
	} {
		got, err := boolean(t, expression)
		require.NoError(t, err, expression)
		require.True(t, got, expression)
	}
}

func TestWhatCannotBeCompiledIsToldToItsAuthor(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"object.":                        "1:8: Syntax error",
		"subject.name == 'a'":            "1:1: undeclared reference to 'subject'",
		"1 + 2":                          "the expression gives int, and must give bool",
		"":                               "Syntax error",
		strings.Repeat("(", 70) + "true": "recursion",
		"'" + strings.Repeat("x", cel.MaxExpressionBytes) + "' == ''":                               "16384 are allowed",
		"[1]" + strings.Repeat(".map(a, a)", 13) + " == [1]":                                        "nesting",
		"object.x.y == [" + strings.Repeat("undeclared,", 500) + "1]":                               "...",
		"result && object.name.startsWith('w')":                                                     "undeclared reference to 'result'",
		"object.name.matches('(')" + " && object.items.exists(i, i.n == 'text' && unknown(i.name))": "undeclared reference to 'unknown'",
	} {
		_, err := dynamic().Compile(expression, gocel.BoolType)
		var syntax *cel.SyntaxError
		require.ErrorAs(t, err, &syntax, expression)
		require.ErrorContains(t, err, want)
		require.LessOrEqual(t, len(err.Error()), 512)
	}
}

func TestValuesOfAnotherTypeAreErrors(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"object.name":        "the expression gives string, and must give bool",
		"object.absent.x":    "no such key: absent",
		"object.name.x == 1": "no such key: x",
		"1 / 0 == 1":         "division by zero",
		"object.items[9].n == 1 && object.name.matches(object.name + '(')": "index out of bounds",
	} {
		_, err := boolean(t, expression)
		require.ErrorContains(t, err, want, expression)
	}
	p, err := dynamic().Compile("object.count", gocel.StringType)
	require.NoError(t, err)
	_, err = p.String(t.Context(), &cel.Budget{}, object())
	require.EqualError(t, err, "the expression gives int, and must give string")
}

func TestAnExtendedEnvironmentKnowsMore(t *testing.T) {
	t.Parallel()
	first := dynamic()
	more := first.Extend(gocel.Variable("result", gocel.BoolType))
	p, err := more.Compile("result ? object.name : 'no'", gocel.StringType)
	require.NoError(t, err)
	again, err := more.Compile("result ? object.name : 'no'", gocel.StringType)
	require.NoError(t, err)
	require.Same(t, p, again, "a program is compiled once")
	got, err := p.String(t.Context(), &cel.Budget{}, map[string]any{"object": map[string]any{
		"name": "web",
	}, "result": true})
	require.NoError(t, err)
	require.Equal(t, "web", got)
	_, err = first.Compile("result", gocel.BoolType)
	require.ErrorContains(t, err, "undeclared reference")
}

// hostile are expressions that need far more time or memory than they are allowed, with
// the expected part of the error.
var hostile = map[string]struct{ expression, want string }{
	"many steps": {
		"[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, " +
			"[0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f >= 0))))))",
		"cost limit exceeded",
	},
	"too many loops": {doubled("1", "t", 13) + " == [1]", "nesting limit"},
	"a text replaced by itself": {
		chain("'"+thousand[:200]+"'", ".replace('a', '"+thousand[:200]+"')", 3) + " == ''",
		"a text is too long",
	},
	"a text of eight": {
		doubled("'aaaaaaaaaaaaaaaa'", "t+t+t+t+t+t+t+t", 10) + " == ['']",
		"cost limit exceeded",
	},
	"lists of lists compared": {
		doubled("[1, 2]", "[t,t,t,t,t,t,t,t]", 10) + " == " + doubled("[1, 2]", "[t,t,t,t,t,t,t,t]", 10),
		"too large",
	},
	"lists of lists printed": {"'%s'.format(" + doubled("[1, 2]", "[t,t,t,t,t,t,t,t]", 10) + ") == ''", "too large"},
	"maps of maps": {
		doubled("{'a': 1}", "{'a': t, 'b': t, 'c': t, 'd': t}", 10) + " == [{}]",
		"too large",
	},
	"lists added": {doubled("[1, 2]", "t+t+t+t+t+t+t+t", 10) + " == [[1]]", "too large"},
	"long separators": {
		"[" + strings.Repeat("'',", 500) + "''].join('" + thousand + thousand + thousand + "') == ''",
		"a text is too long",
	},
	"a wide number": {"'%.100000000f'.format([1.0]) == ''", "exceeds maximum allowed precision"},
	"regular expression too large": {
		"object.name.matches('((((a{1000}){1000}){1000}){1000})')",
		"invalid repeat count",
	},
}

var thousand = strings.Repeat("a", 1000)

func chain(start, step string, times int) string { return start + strings.Repeat(step, times) }

// doubled applies a step of t to a value repeatedly, without nesting loops.
func doubled(start, step string, times int) string {
	return chain("["+start+"]", ".map(t, "+step+")", times)
}

func TestHostileExpressionsEndSoonAndSmall(t *testing.T) {
	for name, tc := range hostile {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, err := dynamic().Compile(tc.expression, gocel.BoolType)
			if err == nil {
				_, err = p.Bool(ctx, &cel.Budget{}, object())
			}
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, tc.want)
			require.NoError(t, ctx.Err())
			t.Logf("%v; %d KiB allocated", err, (after.TotalAlloc-before.TotalAlloc)>>10)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(512<<20))
		})
	}
}

func TestABudgetIsShared(t *testing.T) {
	t.Parallel()
	// Reading a long text has a high cost, but is fast.
	p, err := dynamic().Compile("!object.contains('b')", gocel.BoolType)
	require.NoError(t, err)
	large := map[string]any{"object": strings.Repeat("a", 1<<20)}
	var budget cel.Budget
	evaluated := 0
	for ; evaluated < 1000; evaluated++ {
		if _, err = p.Bool(t.Context(), &budget, large); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, cel.ErrBudget)
	require.EqualError(t, err, "CEL evaluation budget exceeded")
	require.Greater(t, evaluated, 9, "one evaluation costs no more than its limit")
	_, err = p.Bool(t.Context(), &budget, object())
	require.ErrorIs(t, err, cel.ErrBudget)
}

func TestTheContextEndsALoop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	many := make([]any, 10_000)
	for i := range many {
		many[i] = int64(i)
	}
	p, err := dynamic().Compile("object.all(i, i >= 0)", gocel.BoolType)
	require.NoError(t, err)
	_, err = p.Bool(ctx, &cel.Budget{}, map[string]any{"object": many})
	require.ErrorIs(t, err, context.Canceled)
	got, err := p.Bool(t.Context(), &cel.Budget{}, map[string]any{"object": many})
	require.NoError(t, err)
	require.True(t, got)
}

// FuzzExpression checks that no expression panics, hangs or gives invalid text.
func FuzzExpression(f *testing.F) {
	for _, expression := range []string{
		"object.items.map(i, i.n).sum() == quantity('1k').asInteger()",
		"quantity('1e999999999').sign() == 1 || duration('1e99h') > duration('1s') || semver('v1.2', true).major() == 1",
		"'%s%.3f%x'.format([object, 1.5, 255]).replace('a', object.name, 2).split('')[0].matches('^(a|b)*$')",
		"[[1]].map(t, [t, t] + [t]).exists_one(t, t == [[1]]) && {'a': object}.all(k, k in ['a', 'b']) && optional.none().hasValue()",
		"cidr('::/0').containsIP('1::') && url(object.name).getQuery() == {} && timestamp('2000-01-01T00:00:00Z').getFullYear() > int('1')",
	} {
		f.Add(expression)
	}
	env := dynamic()
	f.Fuzz(func(t *testing.T, expression string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p, err := env.Compile(expression, gocel.BoolType)
		if err == nil {
			_, err = p.Bool(ctx, &cel.Budget{}, object())
		}
		require.NoError(t, ctx.Err())
		if err != nil {
			require.NotContains(t, err.Error(), "internal error")
			require.LessOrEqual(t, len(err.Error()), 1024)
		}
	})
}
