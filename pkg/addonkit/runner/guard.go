// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/go-logr/logr"
)

// errPanic stands for a panic in an author's code: a condition of the affected instance
// reports it, and the log has the location.
var errPanic = errors.New("the add-on panicked; this is a bug in it, and its log has the stack trace")

// guarded calls an author's code and turns a panic into an error, so that a failure for one
// instance is reported for that instance only.
func guarded(ctx context.Context, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			logr.FromContextOrDiscard(ctx).Error(errPanic, "Add-on panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: panic: %v", errPanic, p)
		}
	}()
	return call()
}
