// SPDX-License-Identifier: Apache-2.0

package path_test

import (
	"errors"
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-ocm/kubectl-ocm/internal/path"
)

const sample = `{"n":1,"f":1.5,"s":"text","null":null,"a.b":"dotted","a":{"b":"nested"},
	"list":[{"k":"x","v":1},{"k":"y","v":2},{"k":"z"}],"map":{"q":[1],"p":[2,3]}}`

func decode(t testing.TB) any {
	t.Helper()
	var out any
	require.NoError(t, json.Unmarshal([]byte(sample), &out))
	return out
}

func free(int) error { return nil }

// given returns the results of an expression for the sample, with their paths.
func given(t testing.TB, x *path.Expression) ([]string, error) {
	t.Helper()
	var out []string
	err := x.Each(decode(t), free, func(m path.Match) error {
		out = append(out, fmt.Sprint(m.Place(), "=", m.Value))
		return nil
	})
	return out, err
}

// TestAJSONPathIsReadInTwoWays shows where kubectl's reading and the lenient one differ;
// an error begins with "!".
func TestAJSONPathIsReadInTwoWays(t *testing.T) {
	for text, want := range map[string]struct{ kubectl, lenient []string }{
		".n":             {[]string{"[n]=1"}, []string{"[n]=1"}},
		".none":          {nil, []string{"[none]=<nil>"}},
		"['a.b']":        {[]string{"[a b]=nested"}, []string{"[a.b]=dotted"}},
		`["a.b"]`:        {[]string{"!it is not a JSONPath"}, []string{"[a.b]=dotted"}},
		".list[7]":       {[]string{"!the list has 3 elements"}, []string{"[list 7]=<nil>"}},
		".list[1:9].k":   {[]string{"!the list has 3 elements"}, []string{"[list 1 k]=y", "[list 2 k]=z"}},
		".list[0:3:2].k": {[]string{"[list 0 k]=x", "[list 2 k]=z"}, []string{"[list 0 k]=x", "[list 2 k]=z"}},
		".list[-1].k":    {[]string{"[list 2 k]=z"}, []string{"[list 2 k]=z"}},
		".map[*]":        {[]string{"!a map is taken for a list"}, []string{"[map p]=[2 3]", "[map q]=[1]"}},
		".map.*[0,1]": {[]string{"!the list has 1 elements"},
			[]string{"[map p 0]=2", "[map p 1]=3", "[map q 0]=1", "[map q 1]=<nil>"}},

		".list[0:2]['v','k']": {[]string{"[list 0 v]=1", "[list 1 v]=2", "[list 0 k]=x", "[list 1 k]=y"},
			[]string{"[list 0 v]=1", "[list 0 k]=x", "[list 1 v]=2", "[list 1 k]=y"}},
		".list[?(@.v!=1)].k": {[]string{"[list 1 k]=y"}, []string{"[list 1 k]=y", "[list 2 k]=z"}},
		".list[?(@.k>1)].k": {[]string{"!a filter compares values of different kinds"},
			[]string{"[list 0 k]=x", "[list 1 k]=y", "[list 2 k]=z"}},
		".list[?(@.v)].k":       {[]string{"[list 0 k]=x", "[list 1 k]=y"}, []string{"[list 0 k]=x", "[list 1 k]=y"}},
		`.list[ ?(@.k == "y")]`: {[]string{"!it is not a JSONPath"}, []string{"[list 1]=map[k:y v:2]"}},
		".map[?(@[0]==1)]":      {[]string{"!a map is taken for a list"}, []string{"[map q]=[1]"}},
		".list[?(k=='x')]": {[]string{`!"k" is not understood`},
			[]string{"!at character 6: the brackets are not understood; write"}},
		".list[?(@.k=~'x')]": {[]string{"!it is not a JSONPath"},
			[]string{"!at character 6: the brackets are not understood"}},
		".list[1 2]": {[]string{"!it is not a JSONPath"},
			[]string{"!at character 6: the brackets are not understood"}},
		".list[0:2:0]": {[]string{"!the step of a range must be positive"},
			[]string{"!at character 6: the brackets are not understood"}},
		".list[?(@.k=='x'})]": {[]string{"[list 0]=map[k:x v:1]"},
			[]string{`!at character 17: '}' has no meaning here; remove it`}},
		".list[?(@.*=='x')]": {[]string{"!a filter can only compare one value"},
			[]string{`!found "*" instead of the name of a field`}},
		"..v":    {[]string{"[list 0 v]=1", "[list 1 v]=2"}, nil},
		"'text'": {[]string{"[]=text"}, []string{"['text']=<nil>"}},
		"status": {[]string{`!"status" is not understood; begin the names of fields with a dot`},
			[]string{"[status]=<nil>"}},
		".list[?(@.k==\"\\x00\"": {[]string{"!it is not a JSONPath"}, []string{"!the string is not a valid JSON string"}},
	} {
		for name, tc := range map[string]struct {
			read func(string) (*path.Expression, error)
			want []string
		}{"kubectl": {path.Kubectl, want.kubectl}, "lenient": {path.JSONPath, want.lenient}} {
			if name == "lenient" && want.lenient == nil {
				continue
			}
			t.Run(name+" "+text, func(t *testing.T) {
				x, err := tc.read(text)
				var got []string
				if err == nil {
					got, err = given(t, x)
				}
				if len(tc.want) == 1 && tc.want[0][0] == '!' {
					require.ErrorContains(t, err, tc.want[0][1:])
					return
				}
				require.NoError(t, err)
				require.Equal(t, tc.want, got)
			})
		}
	}
}

func TestAnEvaluationEndsWhenItsCostIsRefused(t *testing.T) {
	for text, read := range map[string]func(string) (*path.Expression, error){
		"..k": path.Kubectl, ".list[*].k": path.JSONPath, "/list/0/k": path.Pointer, ".list[] | select(.k == \"y\")": path.JQ,
		"first(..|..|..)": path.JQ, ".list[?(@..k==@.k)]": path.Kubectl, ".map | . == .": path.JQ,
	} {
		x, err := read(text)
		require.NoError(t, err, text)
		cost := 0
		require.NoError(t, x.Each(decode(t), func(n int) error { cost += n; return nil }, func(path.Match) error { return nil }), text)
		enough := errors.New("enough")
		for limit := range cost {
			left := limit
			err := x.Each(decode(t), func(n int) error {
				if left -= n; left < 0 {
					return enough
				}
				return nil
			}, func(path.Match) error { return nil })
			require.ErrorIs(t, err, enough, "%s goes on after %d of %d steps", text, limit, cost)
		}
		stop := errors.New("stop")
		require.ErrorIs(t, x.Each(decode(t), free, func(path.Match) error { return stop }), stop, text)
	}
}

func FuzzExpressionsAreHarmless(f *testing.F) {
	for _, s := range []string{
		"..k", "{.list[?(@.k=='x')].v}", "/a~1b/0", ".a[1:2:3]", "['\\u0000 0']", "[?('\x000'==@)]", "$['a',\"b\",*]",
		".list[] | select(.k == 1)", ".a[0:9223372036854775807:9223372036854775807]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func(string) (*path.Expression, error){path.Kubectl, path.JSONPath, path.Pointer, path.JQ} {
			x, err := read(text)
			if err != nil {
				require.True(t, utf8.ValidString(err.Error()) || !utf8.ValidString(text))
				continue
			}
			left, given := 10_000, 0
			_ = x.Each(decode(t), func(n int) error {
				require.GreaterOrEqual(t, n, 0)
				if left -= n; left < 0 {
					return errors.New("enough")
				}
				return nil
			}, func(path.Match) error {
				given++
				return nil
			})
			require.LessOrEqual(t, given, 10_000)
		}
	})
}
