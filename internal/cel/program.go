// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"errors"
	"fmt"

	gocel "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

// Budget bounds what several evaluations may cost together. The zero value is a full
// budget. It is not safe for concurrent use.
type Budget struct {
	// Limit is what they may cost; 0 means BudgetLimit.
	Limit uint64
	spent uint64
}

func (b *Budget) limit() uint64 {
	if b.Limit == 0 {
		return BudgetLimit
	}
	return b.Limit
}

// Spent returns the cost of the evaluations so far, in the units that CEL counts. The
// last evaluation may take it above the limit.
func (b *Budget) Spent() uint64 { return b.spent }

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	program gocel.Program
	kind    *gocel.Type
	reads   map[string]Reference
}

// Bool evaluates an expression whose value is true or false.
func (p *Program) Bool(ctx context.Context, budget *Budget, variables map[string]any) (bool, error) {
	out, err := p.eval(ctx, budget, variables)
	if err != nil {
		return false, err
	}
	value, ok := out.(types.Bool)
	if !ok {
		return false, p.mismatch(out)
	}
	return bool(value), nil
}

// String evaluates an expression whose value is a string.
func (p *Program) String(ctx context.Context, budget *Budget, variables map[string]any) (string, error) {
	out, err := p.eval(ctx, budget, variables)
	if err != nil {
		return "", err
	}
	value, ok := out.(types.String)
	if !ok {
		return "", p.mismatch(out)
	}
	return string(value), nil
}

func (p *Program) mismatch(out ref.Val) error {
	return fmt.Errorf("the expression gives %s, and must give %s", out.Type().TypeName(), p.kind)
}

// eval evaluates the expression and charges its cost. The text of an error is bounded; it
// may quote values of the variables.
func (p *Program) eval(ctx context.Context, budget *Budget, variables map[string]any) (ref.Val, error) {
	if budget.spent >= budget.limit() {
		return nil, ErrBudget
	}
	var out ref.Val
	var details *gocel.EvalDetails
	var err error
	if ctx.Done() == nil { // it is never done, and watching it costs a tenth of a small expression
		out, details, err = p.program.Eval(variables)
	} else {
		out, details, err = p.program.ContextEval(ctx, variables)
	}
	cost := uint64(costLimit)
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	budget.spent += cost
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("evaluating took too long: %w", ctx.Err())
	case err != nil:
		return nil, errors.New(excerpt.Within(err.Error(), maxProblem))
	case budget.spent > budget.limit():
		return nil, ErrBudget
	}
	return out, nil
}
