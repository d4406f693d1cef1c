// SPDX-License-Identifier: Apache-2.0

package write

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContainsComparesWhatIsNamed(t *testing.T) {
	live := map[string]any{"a": int64(1), "b": map[string]any{
		"c": "x",
		"d": "default",
	}, "l": []any{
		map[string]any{"n": "1", "p": "TCP"},
	}}
	for name, tc := range map[string]struct {
		want map[string]any
		is   bool
	}{
		"nothing":                    {map[string]any{}, true},
		"a part":                     {map[string]any{"b": map[string]any{"c": "x"}}, true},
		"a list item with a default": {map[string]any{"l": []any{map[string]any{"n": "1"}}}, true},
		"another value":              {map[string]any{"a": int64(2)}, false},
		"one more item":              {map[string]any{"l": []any{map[string]any{"n": "1"}, map[string]any{"n": "2"}}}, false},
		"a field that is not there":  {map[string]any{"z": "y"}, false},
		"a zero that is not there":   {map[string]any{"z": "", "y": map[string]any{}, "x": []any{}}, true},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.is, contains(live, tc.want)) })
	}
}
