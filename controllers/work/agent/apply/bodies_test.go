// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAPassHoldsOnlySoManyBytesOfWhatItLooksAt(t *testing.T) {
	large := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"k": strings.Repeat("x", 1<<20)}}}
	}
	const objects = 100
	b := newBodies(objects + 2)
	for i := range objects {
		b.keep(i, large())
	}
	small := &unstructured.Unstructured{Object: map[string]any{"a": "b"}}
	b.keep(objects, small)
	b.keep(objects+1, nil)
	held := 0
	for _, live := range b.live {
		if live != nil {
			held += weigh(live.Object)
		}
	}
	require.LessOrEqual(t, held, maxBodies)
	require.Greater(t, held, maxBodies/2)

	require.True(t, b.found(0))
	require.True(t, b.found(objects-1), "it is there, though not held")
	require.False(t, b.found(objects+1))

	reads, fault := 0, errors.New("no")
	read := func() (*unstructured.Unstructured, error) {
		if reads++; reads == 1 {
			return nil, fault
		}
		return large(), nil
	}
	given := 0
	for i := range objects {
		live, err := b.take(i, read)
		if err != nil {
			require.ErrorIs(t, err, fault)
			continue
		}
		require.Equal(t, large(), live)
		given++
	}
	require.Equal(t, objects-1, given)
	require.Equal(t, objects-7, reads, "seven fit in, each other is read once more")
	live, err := b.take(objects, read)
	require.NoError(t, err)
	require.Same(t, small, live, "a small object still fits")
	live, err = b.take(objects+1, read)
	require.NoError(t, err)
	require.Nil(t, live, "a missing object is not read again")
	require.Equal(t, objects-7, reads)
	require.Equal(t, make([]*unstructured.Unstructured, objects+2), b.live, "a body that was taken is not kept")
}

func TestWhatWeighsIsTextAndNumberOfValues(t *testing.T) {
	require.Equal(t, nodeWeight, weigh(nil))
	require.Equal(t, nodeWeight+3, weigh("abc"))
	require.Equal(t, 3*nodeWeight, weigh([]any{int64(1), true}))
	require.Equal(t, 3*nodeWeight+1+2, weigh(map[string]any{"k": "vv"}))
}
