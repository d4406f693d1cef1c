// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/util/workqueue"
)

// parallel is how many writes of a plan are in flight at a time if its Order allows several.
const parallel = 8

// each calls do for every item of list, at most limit at a time, and in order when limit is
// 1. A failing item does not stop the others.
func each[T any](list []T, limit int, do func(T) error) error {
	errs := make([]error, len(list))
	one := func(i int) { errs[i] = do(list[i]) }
	if limit == 1 {
		// Here a panic ends only the pass.
		for i := range list {
			one(i)
		}
	} else {
		workqueue.ParallelizeUntil(context.Background(), limit, len(list), one)
	}
	if failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil }); len(failed) > 0 {
		return failures(failed)
	}
	return nil
}

// shown is how many errors a message quotes.
const shown = 5

// failures are the errors of one plan. A thousand failing clusters rarely fail for more
// than a few reasons, so the first errors stand for all.
type failures []error

// Error joins the first errors, one per line.
func (f failures) Error() string {
	text := errors.Join(f[:min(len(f), shown)]...).Error()
	if more := len(f) - shown; more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	return text
}

// Unwrap returns all errors.
func (f failures) Unwrap() []error { return f }
