// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatWasForbiddenIsTriedAgainAfterAGrant(t *testing.T) {
	q := NewQueue("test")
	defer q.Close()
	r := NewRefusals(q)
	r.Note(Key{Name: "a"}, true)
	r.Note(Key{Name: "b"}, true)
	r.Note(Key{Name: "b"}, false)
	require.Zero(t, q.Len())
	r.Again()
	require.Equal(t, 1, q.Len(), "what was forbidden and is not any more is left alone")
}
