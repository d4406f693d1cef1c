// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"

	"github.com/kubectl-ocm/kubectl-ocm/internal/path"
)

// maxPath bounds a path, in bytes.
const maxPath = 1024

// errCost ends the evaluation of a path that costs too much.
var errCost = fmt.Errorf(
	"it visits more than %d fields, or all paths of the object more than %d; name the way to the value instead of searching for it",
	maxSteps, allSteps,
)

// evaluatePath evaluates a path over the object.
func (r *reader) evaluatePath(text string) ([]any, error) {
	expression, err := parse(text)
	if err != nil {
		return nil, err
	}
	granted := min(maxSteps, r.all)
	r.steps = granted
	var out []any
	err = expression.Each(r.object, r.spend, func(m path.Match) error {
		out = append(out, m.Value)
		return r.spend(1)
	})
	r.all -= granted - max(r.steps, 0)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// spend subtracts steps from the bound.
func (r *reader) spend(steps int) error {
	if r.steps -= steps; r.steps < 0 {
		return errCost
	}
	return nil
}

// parse parses a path: one expression, without braces.
func parse(text string) (*path.Expression, error) {
	if len(text) > maxPath {
		return nil, fmt.Errorf("it has %d bytes, more than %d; shorten it", len(text), maxPath)
	}
	return path.Kubectl(text)
}

// CheckPath returns why a path can never give a value, or nil if it can.
func CheckPath(text string) error {
	_, err := parse(text)
	return err
}
