// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	gocel "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/cel"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	// MaxRules bounds the rules of one manifest, maxMessage the message of a
	// condition that a rule made, in bytes. A work may have thousands of
	// manifests, and its status is one object.
	MaxRules, maxMessage = 16, 1024
	// maxTime bounds all rules of one manifest. CEL's own limits come first on
	// any machine that is not stalled.
	maxTime = 10 * time.Second
	// roundCost and roundTime are after what cost and time a Round evaluates no
	// more expressions. They are some seconds at most, however many manifests a
	// work has.
	roundCost = 4 * cel.BudgetLimit
	roundTime = 10 * time.Second
)

// messageLate is the message of a condition whose rule was put off.
const messageLate = "not evaluated yet, because the condition rules of this work took too long together; they go on after a minute; make their expressions cheaper, or split the work"

// Variables of expressions.
const (
	variableObject = "object"
	variableResult = "result"
)

// Evaluator evaluates rules. It keeps what it compiled, and can be used by
// several goroutines at a time.
type Evaluator struct {
	// expressions know object, messages know result too.
	expressions, messages *cel.Environment
}

// New makes an Evaluator. CEL is made ready when the first rule needs it.
func New() *Evaluator {
	expressions := cel.New(gocel.Variable(variableObject, gocel.DynType), hasConditions())
	return &Evaluator{
		expressions: expressions,
		messages:    expressions.Extend(gocel.Variable(variableResult, gocel.BoolType)),
	}
}

// hasConditions is a function for a status: whether it holds a list of
// conditions that is not empty.
func hasConditions() gocel.EnvOption {
	return gocel.Function("hasConditions", gocel.Overload("has_conditions_map",
		[]*gocel.Type{gocel.MapType(gocel.StringType, gocel.DynType)}, gocel.BoolType,
		gocel.UnaryBinding(func(value ref.Val) ref.Val {
			conditions, there := value.(traits.Mapper).Find(types.String("conditions"))
			list, ok := conditions.(traits.Lister)
			return types.Bool(there && ok && list.Size() != types.IntZero)
		})))
}

// Round is one pass over the manifests of a work, whose rules share what it may
// cost: without that many manifests would hold the agent for as many times as
// long as one may. One goroutine at a time may use it.
type Round struct {
	evaluator *Evaluator
	clock     clock.PassiveClock
	cost      uint64
	took      time.Duration
}

// Round begins a pass. The clock tells how long evaluating takes.
func (e *Evaluator) Round(clk clock.PassiveClock) *Round { return &Round{evaluator: e, clock: clk} }

// evaluation is about the rules of one manifest.
type evaluation struct {
	*Evaluator
	object *unstructured.Unstructured
	budget cel.Budget
	// late is set where expressions are put off, put when one was.
	late, put bool
	// before are the verdicts to keep of rules that are put off.
	before []status.RuleVerdict
}

// Evaluate makes the conditions of a live object, in the order of the rules.
// Late means that rules were put off because those of other manifests have used
// up what the round may cost: their conditions are as they were before, and say
// that they were not evaluated where there is nothing before.
func (r *Round) Evaluate(
	ctx context.Context, rules []workv1.ConditionRule, object *unstructured.Unstructured,
	before []status.RuleVerdict,
) (verdicts []status.RuleVerdict, late bool) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	e := evaluation{Evaluator: r.evaluator, object: object, late: r.cost >= roundCost || r.took >= roundTime, before: before}
	if object.GetDeletionTimestamp() != nil {
		// Whether it was complete has to be known now, or it would be made again.
		e.late = false
	}
	began := r.clock.Now()
	verdicts = e.verdicts(ctx, rules)
	r.cost += e.budget.Spent()
	r.took += r.clock.Since(began)
	return verdicts, e.put
}

func (e *evaluation) verdicts(ctx context.Context, rules []workv1.ConditionRule) []status.RuleVerdict {
	var out []status.RuleVerdict
	for i, rule := range rules {
		if !settable(rule.Condition) || slices.ContainsFunc(out, func(v status.RuleVerdict) bool { return v.Condition == rule.Condition }) {
			continue
		}
		if len(out) == MaxRules {
			out[MaxRules-1].Verdict = invalid(fmt.Sprintf("a manifest can have %d condition rules, and this one has %d; remove some", MaxRules, len(rules)))
			return out
		}
		if verdict, ok := e.rule(ctx, &rules[i]); ok {
			verdict.Message = excerpt.Within(verdict.Message, maxMessage)
			out = append(out, status.RuleVerdict{Condition: rule.Condition, Verdict: verdict})
		}
	}
	return out
}

// conditionType is what Kubernetes accepts as the type of a condition.
var conditionType = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

// settable tells whether a rule may make a condition of that type. Those that
// the agent itself makes would else be overwritten, and one bad name would keep
// the whole status from being written.
func settable(condition string) bool {
	return !reserved(condition) && len(condition) <= 316 && conditionType.MatchString(condition)
}

// reserved tells whether the agent itself makes conditions of that type.
func reserved(condition string) bool {
	switch condition {
	case workv1.ConditionApplied, workv1.ConditionAvailable, workv1.ConditionStatusFeedbackSynced, workv1.ConditionDeleting:
		return true
	}
	return false
}

// rule evaluates one rule; false is no condition.
func (e *evaluation) rule(ctx context.Context, rule *workv1.ConditionRule) (status.Verdict, bool) {
	var result bool
	var message string
	switch rule.Type {
	case workv1.ConditionRuleTypeWellKnownConditions:
		known := wellKnown(rule.Condition, e.object)
		if known == nil {
			return status.Verdict{}, false
		}
		result, message = known(e.object)
	case workv1.ConditionRuleTypeCEL:
		var fault *status.Verdict
		if result, fault = e.all(ctx, rule); fault != nil {
			return *fault, true
		}
		message = "Manifest is " + rule.Condition
		if !result {
			message = "Manifest is not " + rule.Condition
		}
	default:
		return invalid(fmt.Sprintf("unrecognized condition rule type %s", rule.Type)), true
	}
	if rule.Message != "" {
		message = rule.Message
	}
	if rule.MessageExpression != "" {
		if late := e.putOff(rule.Condition); late != nil {
			if result == (late.Status == metav1.ConditionTrue) && late.Reason == workv1.ReasonConditionRuleEvaluated {
				message = late.Message // the words for the same result
			}
		} else if told, fault := e.message(ctx, rule.MessageExpression, result); fault != nil {
			return *fault, true
		} else if told != "" {
			message = told
		}
	}
	verdict := status.Verdict{Status: metav1.ConditionFalse, Reason: workv1.ReasonConditionRuleEvaluated, Message: message}
	if result {
		verdict.Status = metav1.ConditionTrue
	}
	return verdict, true
}

// all tells whether all expressions are true. It ends with the first that is
// not.
func (e *evaluation) all(ctx context.Context, rule *workv1.ConditionRule) (bool, *status.Verdict) {
	if len(rule.CELExpressions) == 0 {
		fault := invalid("a rule of type CEL needs one expression at least; add celExpressions")
		return false, &fault
	}
	if late := e.putOff(rule.Condition); late != nil {
		return false, late
	}
	for i, expression := range rule.CELExpressions {
		field := fmt.Sprintf("celExpressions[%d]", i)
		program, err := e.expressions.Compile(expression, gocel.BoolType)
		if err != nil {
			return false, compileFault(field, err)
		}
		result, err := program.Bool(ctx, &e.budget, map[string]any{variableObject: e.object.Object})
		if err != nil {
			return false, e.fault(field, err)
		}
		if !result {
			return false, nil
		}
	}
	return true, nil
}

// message evaluates a messageExpression.
func (e *evaluation) message(ctx context.Context, expression string, result bool) (string, *status.Verdict) {
	const field = "messageExpression"
	program, err := e.messages.Compile(expression, gocel.StringType)
	if err != nil {
		return "", compileFault(field, err)
	}
	told, err := program.String(ctx, &e.budget, map[string]any{variableObject: e.object.Object, variableResult: result})
	if err != nil {
		return "", e.fault(field, err)
	}
	return told, nil
}

// putOff is the verdict where expressions are put off, nil where they are not:
// the one before, if there is one.
func (e *evaluation) putOff(condition string) *status.Verdict {
	if !e.late {
		return nil
	}
	e.put = true
	for i := range e.before {
		if e.before[i].Condition == condition {
			verdict := e.before[i].Verdict
			return &verdict
		}
	}
	return &status.Verdict{Status: metav1.ConditionUnknown, Reason: workv1.ReasonConditionRuleInternalError, Message: messageLate}
}

func invalid(problem string) status.Verdict {
	return status.Verdict{Status: metav1.ConditionUnknown, Reason: workv1.ReasonConditionRuleInvalid, Message: problem}
}

// compileFault is the verdict on an expression that cannot be compiled: the
// author's fault or ours.
func compileFault(field string, err error) *status.Verdict {
	var syntax *cel.SyntaxError
	if errors.As(err, &syntax) {
		return &status.Verdict{Status: metav1.ConditionFalse, Reason: workv1.ReasonConditionRuleExpressionError, Message: field + ": " + err.Error()}
	}
	return &status.Verdict{Status: metav1.ConditionUnknown, Reason: workv1.ReasonConditionRuleInternalError, Message: field + ": " + err.Error()}
}

// fault is the verdict on an expression that failed. What CEL says may quote the
// object, which for a Secret goes nowhere.
func (e *evaluation) fault(field string, err error) *status.Verdict {
	text := err.Error()
	if !errors.Is(err, cel.ErrBudget) {
		if manifest.IsSecret(e.object.GetAPIVersion(), e.object.GetKind()) {
			text = "the expression failed; why is not told, because it may quote the Secret"
		}
		text = field + ": " + text
	}
	return &status.Verdict{Status: metav1.ConditionFalse, Reason: workv1.ReasonConditionRuleExpressionError, Message: text}
}
