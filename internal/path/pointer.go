// SPDX-License-Identifier: Apache-2.0

package path

import (
	"errors"
	"strconv"
	"strings"
)

// Pointer parses a JSON pointer (RFC 6901).
func Pointer(text string) (*Expression, error) {
	if text == "" {
		return nil, errors.New("names the whole object; name a field, for example /spec/replicas")
	}
	if text[0] != '/' {
		return nil, errors.New("must begin with \"/\"; write it as in /spec/replicas")
	}
	n := &node{}
	for _, part := range strings.Split(text[1:], "/") {
		plain := strings.NewReplacer("~0", "", "~1", "").Replace(part)
		if strings.Contains(plain, "~") {
			return nil, errors.New("\"~\" must be followed by 0 or 1; write ~0 for a tilde and ~1 for a slash in a name")
		}
		n = then(n, &node{kind: token, name: strings.NewReplacer("~1", "/", "~0", "~").Replace(part)})
	}
	return &Expression{n}, nil
}

// pointerIndex returns the index that a step of a pointer means: digits without a leading
// zero.
func pointerIndex(s string) (int, bool) {
	if s == "" || len(s) > 9 || (len(s) > 1 && s[0] == '0') || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
