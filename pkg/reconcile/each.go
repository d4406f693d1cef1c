// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// parallel is how many writes of one unordered plan are on their way at a time.
const parallel = 8

// each calls do for every item of a list, at most limit of them at a time, and
// for one at a time in their order. An item that fails does not keep the others
// from being tried.
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

// shown is how many of many errors are put into words.
const shown = 5

// failures are the errors of one plan. What failed for a thousand clusters has
// few reasons, so that the first errors speak for all.
type failures []error

// Error joins the first errors, one a line.
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
