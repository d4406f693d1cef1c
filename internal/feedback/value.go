// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/internal/path"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// valueOf returns the value of the matches, with its size in bytes; nil if there is none.
func (r *reader) valueOf(matches []any) (*workv1.FieldValue, int, error) {
	switch {
	case len(matches) == 0:
		return nil, 0, nil
	case len(matches) > 1 && r.raw:
		return r.rawOf(matches)
	case len(matches) > 1 && r.secret:
		return nil, 0, errors.New("it matches more than one value of a Secret; name each of them by a path of its own")
	}
	switch v := matches[0].(type) {
	case nil:
		return nil, 0, nil
	case int64:
		return &workv1.FieldValue{Type: workv1.ValueTypeInteger, Integer: &v}, 8, nil
	case bool:
		return &workv1.FieldValue{Type: workv1.ValueTypeBoolean, Boolean: &v}, 1, nil
	case string:
		if len(v) > MaxString {
			return nil, 0, fmt.Errorf("the text has %d bytes, more than %d", len(v), MaxString)
		}
		return &workv1.FieldValue{Type: workv1.ValueTypeString, String: &v}, len(v), nil
	default:
		return r.rawOf(v)
	}
}

// rawOf returns a value as JSON text, if that is allowed and short enough.
func (r *reader) rawOf(v any) (*workv1.FieldValue, int, error) {
	if r.secret {
		return nil, 0, fmt.Errorf("it leads to %s, and of a Secret only single values are given; name each of them by a path of its own", path.TypeOf(v))
	}
	if !r.raw {
		return nil, 0, fmt.Errorf(
			"it leads to %s, not to an integer, a string or a boolean; name a field of it, or enable the feature gate RawFeedbackJsonString of the work agent",
			path.TypeOf(v),
		)
	}
	tooLong := fmt.Errorf("as JSON it has more than %d bytes; name a part of it", r.limit)
	if leastSize(v, r.limit) > r.limit {
		return nil, 0, tooLong
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, 0, errors.New("it cannot be written as JSON")
	}
	raw := strings.TrimSuffix(text.String(), "\n")
	if len(raw) > r.limit {
		return nil, 0, tooLong
	}
	return &workv1.FieldValue{Type: workv1.ValueTypeJSONRaw, JSONRaw: &raw}, len(raw), nil
}

// leastSize returns a lower bound of the length of a value as JSON, so that a value that
// is far too long is never encoded. It stops above limit.
func leastSize(v any, limit int) int {
	size := 1
	switch v := v.(type) {
	case string:
		return 2 + len(v)
	case []any:
		for _, item := range v {
			if size += leastSize(item, limit-size); size > limit {
				return size
			}
		}
	case map[string]any:
		for key, item := range v {
			if size += len(key) + 3 + leastSize(item, limit-size); size > limit {
				return size
			}
		}
	}
	return size
}
