// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	gocel "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

// Bounds of what an expression may cost.
const (
	// MaxExpressionBytes bounds the length of one expression.
	MaxExpressionBytes = 16 << 10
	// costLimit bounds one evaluation of one expression, in the units that CEL counts:
	// about a tenth of a second.
	costLimit = 1_000_000
	// BudgetLimit bounds all evaluations that share a Budget.
	BudgetLimit = 10_000_000
	// interruptEvery is the number of steps of a loop after which the context is checked.
	interruptEvery = 100
	// maxNesting bounds how many loops are nested, or iterate over the result of another;
	// maxDepth bounds any other nesting.
	maxNesting, maxDepth = 12, 64
	// maxPrograms bounds the programs that an environment keeps; each takes about ten
	// KiB.
	maxPrograms = 64
	// maxProblem bounds the text of a compiler error, in bytes.
	maxProblem = 512
)

// Environment is what one kind of expressions may use. It is safe for concurrent use.
type Environment struct {
	make  func() (*gocel.Env, error)
	costs []interpreter.CostTrackerOption

	mu       sync.Mutex
	programs map[programKey]*Program
}

type programKey struct{ expression, kind string }

// New returns an environment with the libraries of this package and the given options:
// the caller's variables and functions.
func New(options ...gocel.EnvOption) *Environment {
	return environment(nil, func() (*gocel.Env, error) {
		return gocel.NewEnv(append(base(), options...)...)
	})
}

// Cost returns the cost of a call of a caller's function, given its arguments and its
// result.
type Cost func(args []ref.Val, result ref.Val) uint64

// Charging returns a copy of the environment in which the named overloads have the given
// costs.
func (e *Environment) Charging(costs map[string]Cost) *Environment {
	trackers := slices.Clone(e.costs)
	for overload, cost := range costs {
		trackers = append(trackers, interpreter.OverloadCostTracker(overload, func(args []ref.Val, result ref.Val) *uint64 {
			n := cost(args, result)
			return &n
		}))
	}
	return environment(trackers, e.make)
}

// Extend returns a copy of the environment with further options.
func (e *Environment) Extend(options ...gocel.EnvOption) *Environment {
	return environment(e.costs, func() (*gocel.Env, error) {
		env, err := e.make()
		if err != nil {
			return nil, err
		}
		return env.Extend(options...)
	})
}

func environment(costs []interpreter.CostTrackerOption, create func() (*gocel.Env, error)) *Environment {
	return &Environment{make: sync.OnceValues(create), costs: costs, programs: map[programKey]*Program{}}
}

// base returns the options that all environments start with.
func base() []gocel.EnvOption {
	return append([]gocel.EnvOption{
		gocel.OptionalTypes(), ext.Strings(),
		library.Lists(), library.Regex(), library.URLs(), library.Quantity(),
		library.IP(), library.CIDR(), library.Format(), library.SemverLib(),
		gocel.CrossTypeNumericComparisons(true), gocel.DefaultUTCTimeZone(true),
		gocel.ParserExpressionSizeLimit(MaxExpressionBytes), gocel.ParserRecursionLimit(maxDepth),
		gocel.ASTValidators(gocel.ValidateComprehensionNestingLimit(maxNesting)),
	}, smallStrings()...)
}

// SyntaxError means that an expression is invalid. Its author has to correct it.
type SyntaxError struct {
	// Problem is what is wrong.
	Problem string
}

// Error is the problem.
func (e *SyntaxError) Error() string { return e.Problem }

// Compile compiles an expression whose value is of the given type, or of a type that is
// known only after evaluation. The error is a *SyntaxError if the expression is at fault.
func (e *Environment) Compile(expression string, kind *gocel.Type) (program *Program, err error) {
	key := programKey{expression, kind.String()}
	e.mu.Lock()
	known := e.programs[key]
	e.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if program, err = e.compile(expression, kind); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.programs) >= maxPrograms {
		clear(e.programs)
	}
	e.programs[key] = program
	return program, nil
}

// Check returns the error that Compile would return, and keeps no program.
func (e *Environment) Check(expression string, kind *gocel.Type) error {
	_, err := e.compile(expression, kind)
	return err
}

func (e *Environment) compile(expression string, kind *gocel.Type) (program *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("compiling the expression: %v", r)
		}
	}()
	if len(expression) > MaxExpressionBytes {
		return nil, &SyntaxError{fmt.Sprintf("the expression has %d bytes, %d are allowed", len(expression), MaxExpressionBytes)}
	}
	env, err := e.make()
	if err != nil {
		return nil, fmt.Errorf("making the CEL environment: %w", err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, &SyntaxError{complaint(issues)}
	}
	if gives := ast.OutputType(); !gives.IsExactType(kind) && !gives.IsExactType(gocel.DynType) {
		return nil, &SyntaxError{fmt.Sprintf("the expression gives %s, and must give %s", gives, kind)}
	}
	prepared, err := env.Program(ast,
		gocel.CostLimit(costLimit), gocel.CostTracking(&library.CostEstimator{}),
		gocel.InterruptCheckFrequency(interruptEvery), gocel.EvalOptions(gocel.OptOptimize),
		gocel.CustomDecoratorV2(smallValues),
		gocel.CostTrackerOptions(e.costs...),
	)
	if err != nil {
		return nil, fmt.Errorf("preparing the expression: %w", err)
	}
	return &Program{program: prepared, kind: kind, reads: references(ast)}, nil
}

// complaint returns the compiler's message, without its marker of the position.
func complaint(issues *gocel.Issues) string {
	var lines []string
	for _, e := range issues.Errors() {
		lines = append(lines, fmt.Sprintf("%d:%d: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
	}
	return excerpt.Within(strings.Join(lines, "; "), maxProblem)
}

// ErrBudget means that the evaluations that share a Budget cost too much together.
var ErrBudget = errors.New("CEL evaluation budget exceeded")
