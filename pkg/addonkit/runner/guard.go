// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/go-logr/logr"
)

// errPanic stands for a panic in the code of an author: it is told in a condition of the
// instance that it happened for, and the log has the place.
var errPanic = errors.New("the program of the add-on failed; this is a mistake in it, and its log has the place")

// guarded calls the code of an author, so that what goes wrong for one instance is told
// of that one as any error is.
func guarded(ctx context.Context, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			logr.FromContextOrDiscard(ctx).Error(errPanic, "Add-on panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: panic: %v", errPanic, p)
		}
	}()
	return call()
}
