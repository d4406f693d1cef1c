// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestEachItemIsTriedThoughOthersFail(t *testing.T) {
	var list []int
	for i := range 50 {
		list = append(list, i)
	}
	for _, limit := range []int{1, 8, 100} {
		var mu sync.Mutex
		var done []int
		err := each(list, limit, func(i int) error {
			mu.Lock()
			defer mu.Unlock()
			done = append(done, i)
			if i%5 == 0 {
				return fmt.Errorf("no %d", i)
			}
			return nil
		})
		require.ErrorContains(t, err, "no 0\nno 5\nno 10\nno 15\nno 20\nand 5 more")
		require.NotContains(t, err.Error(), "no 25")
		if limit == 1 {
			require.True(t, slices.IsSorted(done), "one at a time is in order")
		}
		require.ElementsMatch(t, list, done)
	}
	require.NoError(t, each(nil, 8, func(int) error { return errors.New("never") }))
}

// The limit is reached but not exceeded: the items wait for each other to begin.
func TestAsManyAreOnTheirWayAsTheLimitSays(t *testing.T) {
	var mu sync.Mutex
	running, most := 0, 0
	begun := make(chan struct{}, 4)
	all := make(chan struct{})
	go func() {
		for range 4 {
			<-begun
		}
		close(all)
	}()
	require.NoError(t, each(make([]int, 12), 4, func(int) error {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		select {
		case begun <- struct{}{}:
		default:
		}
		<-all
		mu.Lock()
		running--
		mu.Unlock()
		return nil
	}))
	require.Equal(t, 4, most)
}

func TestConflictsAloneAreNoFailure(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "works"}, "w", errors.New("changed"))
	require.True(t, onlyConflicts(errors.Join(failures{conflict, fmt.Errorf("applying: %w", conflict)}, nil)))
	many := slices.Repeat(failures{conflict}, 10)
	require.True(t, onlyConflicts(many))
	require.False(t, onlyConflicts(append(many, errors.New("other"))), "also one that is not put into words counts")
	require.Equal(t, shown+1, len(strings.Split(many.Error(), "\n")))
}
