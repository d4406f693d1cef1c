// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"fmt"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	// maxExpressions bounds the expressions of one strategy.
	maxExpressions = 100
	// maxLength bounds one expression, in bytes.
	maxLength = 1024
	// maxQuoted bounds how much of an expression stands in a message.
	maxQuoted = 100
)

// Error says which expression of a work cannot be used, and the fix. It never
// holds values of an object.
type Error struct {
	// Where names the expression: "OnSpokePresent.jsonPointers[0]".
	Where string
	// Expression is its text.
	Expression string
	// Problem is a sentence with the fix.
	Problem string
}

// Error is `ignoreFields OnSpokePresent.jsonPointers[0] "spec": must begin ...`.
func (e *Error) Error() string {
	text := e.Expression
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "..."
	}
	return fmt.Sprintf("%s %q: %s", e.Where, text, e.Problem)
}

// Fields are the fields that a strategy ignores, under two conditions.
type Fields struct {
	present, change []expression
}

// expression is one parsed expression.
type expression struct {
	where, text string
	root        *node
}

func (e expression) fault(problem string) error {
	return &Error{Where: e.where, Expression: e.text, Problem: problem}
}

// Parse reads the expressions of a strategy. The error is an *Error.
func Parse(entries []workv1.IgnoreField) (*Fields, error) {
	f := &Fields{}
	count := 0
	for _, entry := range entries {
		condition := entry.Condition
		if condition == "" {
			condition = workv1.IgnoreFieldsConditionOnSpokePresent
		}
		if condition != workv1.IgnoreFieldsConditionOnSpokePresent && condition != workv1.IgnoreFieldsConditionOnSpokeChange {
			return nil, &Error{Where: "condition", Expression: string(condition), Problem: "must be OnSpokePresent or OnSpokeChange; correct it"}
		}
		for _, notation := range []struct {
			name  string
			texts []string
			parse func(string) (*node, error)
		}{
			{"jsonPaths", entry.JSONPaths, parseJSONPath},
			{"jsonPointers", entry.JSONPointers, parsePointer},
			{"jqPathExpressions", entry.JQPathExpressions, parseJQ},
		} {
			for i, text := range notation.texts {
				e := expression{where: fmt.Sprintf("%s.%s[%d]", condition, notation.name, i), text: text}
				if count++; count > maxExpressions {
					return nil, e.fault(fmt.Sprintf("a strategy may have %d expressions; name fewer fields, or their parents", maxExpressions))
				}
				if len(text) > maxLength {
					return nil, e.fault(fmt.Sprintf("has %d bytes, more than the limit of %d; shorten it", len(text), maxLength))
				}
				root, err := notation.parse(text)
				if err != nil {
					return nil, e.fault(err.Error())
				}
				e.root = root
				f.add(condition, e)
			}
		}
	}
	return f, nil
}

func (f *Fields) add(condition workv1.IgnoreFieldsCondition, e expression) {
	if condition == workv1.IgnoreFieldsConditionOnSpokeChange {
		f.change = append(f.change, e)
		return
	}
	f.present = append(f.present, e)
}
