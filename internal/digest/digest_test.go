// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSumsTellValuesApart(t *testing.T) {
	assert.Equal(t, Of(map[string]int{"a": 1, "b": 2}), Of(map[string]int{"b": 2, "a": 1}))
	assert.NotEqual(t, Of([]string{"a"}), Of([]string{"b"}))
	assert.NotEqual(t, Of(nil), Sum{}, "nothing has a form of its own")
	assert.Equal(t, Sum{}, Of(func() {}), "what has no JSON")
	assert.Equal(t, OfBytes([]byte(`"a"`)), Of("a"))
}

func TestPartsDoNotRunTogether(t *testing.T) {
	assert.NotEqual(t, OfParts("ab", "c"), OfParts("a", "bc"))
	assert.NotEqual(t, OfParts("a"), OfParts("a", ""))
	assert.Equal(t, OfParts("a", "b"), OfParts("a", "b"))
}
