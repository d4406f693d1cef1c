// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// parallel is how many writes of a Parallel plan are in flight at a time.
const parallel = 8

// each calls do for every item of list, at most limit at a time, and in order when limit is
// 1. A failing item does not stop the others.
func each[T any](list []T, limit int, do func(T) error) error {
	errs := make([]error, len(list))
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(list); i = int(next.Add(1)) - 1 {
			errs[i] = do(list[i])
		}
	}
	if limit = min(limit, len(list)); limit <= 1 {
		work()
	} else {
		var wg sync.WaitGroup
		for range limit {
			wg.Go(work)
		}
		wg.Wait()
	}
	var failed failures
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return failed
}

// shown is how many errors a message quotes.
const shown = 5

// failures are the errors of one plan. A thousand failing clusters rarely fail for more
// than a few reasons, so the first errors stand for all.
type failures []error

// Error joins the first errors, one per line.
func (f failures) Error() string {
	var lines []string
	for i, err := range f {
		if i == shown {
			lines = append(lines, fmt.Sprintf("and %d more", len(f)-shown))
			break
		}
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns all errors.
func (f failures) Unwrap() []error { return f }
