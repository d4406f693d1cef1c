// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/internal/path"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	// maxExpressions bounds the expressions of one strategy.
	maxExpressions = 100
	// maxLength bounds one expression, in bytes.
	maxLength = 1024
	// maxQuoted bounds how much of an expression a message quotes, in bytes.
	maxQuoted = 100
	// maxSteps bounds the cost of evaluating all expressions of a strategy over one
	// object. A step is one of package path or an entry of the result; this many take
	// about ten milliseconds and at most about ten MiB.
	maxSteps = 200_000
)

var errSteps = errors.New("costs too much on this object; select fewer values, or name the fields one by one")

// evaluator counts the cost of an evaluation.
type evaluator struct{ steps int }

// spend counts work on n bytes or values.
func (e *evaluator) spend(n int) error {
	e.steps += n
	return e.err()
}

// err returns the error for an evaluation that has cost too much.
func (e *evaluator) err() error {
	if e.steps > maxSteps {
		return errSteps
	}
	return nil
}

// Error names the expression of a work that cannot be used, and the fix. It never
// contains values of an object.
type Error struct {
	// Where names the expression: "OnSpokePresent.jsonPointers[0]".
	Where string
	// Expression is its text.
	Expression string
	// Problem says what is wrong and how to fix it.
	Problem string
}

// Error is `ignoreFields OnSpokePresent.jsonPointers[0] "spec": must begin ...`.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %q: %s", e.Where, excerpt.Of(e.Expression, maxQuoted), e.Problem)
}

// Fields are the fields that a strategy ignores, under two conditions.
type Fields struct {
	present, change []expression
}

// expression is one parsed expression.
type expression struct {
	where, text string
	path        *path.Expression
}

func (e expression) fault(problem string) error {
	return &Error{Where: e.where, Expression: e.text, Problem: problem}
}

// Parse reads the expressions of a strategy. The error is an *Error.
func Parse(entries []workv1.IgnoreField) (*Fields, error) {
	f := &Fields{}
	count := 0
	for _, entry := range entries {
		condition := cmp.Or(entry.Condition, workv1.IgnoreFieldsConditionOnSpokePresent)
		if condition != workv1.IgnoreFieldsConditionOnSpokePresent && condition != workv1.IgnoreFieldsConditionOnSpokeChange {
			return nil, &Error{Where: "condition", Expression: string(condition), Problem: "must be OnSpokePresent or OnSpokeChange; correct it"}
		}
		for _, notation := range []struct {
			name  string
			texts []string
			parse func(string) (*path.Expression, error)
		}{
			{"jsonPaths", entry.JSONPaths, path.JSONPath},
			{"jsonPointers", entry.JSONPointers, path.Pointer},
			{"jqPathExpressions", entry.JQPathExpressions, path.JQ},
		} {
			for i, text := range notation.texts {
				e := expression{where: fmt.Sprintf("%s.%s[%d]", condition, notation.name, i), text: text}
				if count++; count > maxExpressions {
					return nil, e.fault(fmt.Sprintf("a strategy may have %d expressions; name fewer fields, or their parents", maxExpressions))
				}
				if len(text) > maxLength {
					return nil, e.fault(fmt.Sprintf("has %d bytes, more than the limit of %d; shorten it", len(text), maxLength))
				}
				var err error
				if e.path, err = notation.parse(text); err != nil {
					return nil, e.fault(err.Error())
				}
				if condition == workv1.IgnoreFieldsConditionOnSpokeChange {
					f.change = append(f.change, e)
				} else {
					f.present = append(f.present, e)
				}
			}
		}
	}
	return f, nil
}
