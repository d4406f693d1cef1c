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
	// MaxRules bounds the rules of one manifest, maxMessage the message of a condition
	// that a rule made, in bytes. A work may have thousands of manifests, and its status
	// is one object.
	MaxRules, maxMessage = 16, 1024
	// maxTime bounds the evaluation of all rules of one manifest. CEL's own limits are
	// reached first on any machine that is not stalled.
	maxTime = 10 * time.Second
	// roundCost and roundTime are the cost and the time after which a Round evaluates no
	// more expressions: a few seconds at most, however many manifests a work has.
	roundCost = 4 * cel.BudgetLimit
	roundTime = 10 * time.Second
)

// messageLate is the message of a condition whose rule was put off.
const messageLate = "not evaluated yet, because the condition rules of this work together took too long; " +
	"evaluation continues after a minute; make their expressions cheaper, or split the work"

// Variables of expressions.
const (
	variableObject = "object"
	variableResult = "result"
)

// Evaluator evaluates rules. It caches compiled expressions, and is safe for concurrent
// use.
type Evaluator struct {
	// expressions have the variable object, messages also result.
	expressions, messages *cel.Environment
}

// New returns an Evaluator. CEL is initialized when the first rule needs it.
func New() *Evaluator {
	expressions := cel.New(gocel.Variable(variableObject, gocel.DynType), hasConditions())
	return &Evaluator{
		expressions: expressions,
		messages:    expressions.Extend(gocel.Variable(variableResult, gocel.BoolType)),
	}
}

// hasConditions is a CEL function on a status: whether it has a non-empty list of
// conditions.
func hasConditions() gocel.EnvOption {
	return gocel.Function("hasConditions", gocel.Overload("has_conditions_map",
		[]*gocel.Type{gocel.MapType(gocel.StringType, gocel.DynType)}, gocel.BoolType,
		gocel.UnaryBinding(func(value ref.Val) ref.Val {
			conditions, there := value.(traits.Mapper).Find(types.String("conditions"))
			list, ok := conditions.(traits.Lister)
			return types.Bool(there && ok && list.Size() != types.IntZero)
		})))
}

// Round is one pass over the manifests of a work, whose rules share one budget: without
// it, many manifests would hold up the agent for that many times the limit of one. It
// must not be used concurrently.
type Round struct {
	evaluator *Evaluator
	clock     clock.PassiveClock
	cost      uint64
	took      time.Duration
}

// Round starts a pass. The clock measures how long evaluating takes.
func (e *Evaluator) Round(clk clock.PassiveClock) *Round { return &Round{evaluator: e, clock: clk} }

// evaluation evaluates the rules of one manifest.
type evaluation struct {
	*Evaluator
	object *unstructured.Unstructured
	budget cel.Budget
	// late is set if expressions are to be put off, put once one was.
	late, put bool
	// before are the verdicts to keep for rules that are put off.
	before []status.RuleVerdict
}

// Evaluate returns the conditions of a live object, in the order of the rules. late means
// that rules were put off because those of other manifests have used up the budget of the
// round: their conditions stay as they were, or say that they were not evaluated where
// there were none.
func (r *Round) Evaluate(
	ctx context.Context, rules []workv1.ConditionRule, object *unstructured.Unstructured,
	before []status.RuleVerdict,
) (verdicts []status.RuleVerdict, late bool) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	// Whether an object that is being deleted was complete must be known now, or it would
	// be created again.
	late = (r.cost >= roundCost || r.took >= roundTime) && object.GetDeletionTimestamp() == nil
	e := evaluation{Evaluator: r.evaluator, object: object, late: late, before: before}
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

// conditionType is the syntax that Kubernetes accepts for the type of a condition.
var conditionType = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

// settable reports whether a rule may make a condition of that type. Otherwise rules
// could overwrite conditions of the agent itself, and one invalid name would keep the
// whole status from being written.
func settable(condition string) bool {
	return !reserved(condition) && len(condition) <= 316 && conditionType.MatchString(condition)
}

// reserved reports whether the agent itself makes conditions of that type.
func reserved(condition string) bool {
	return slices.Contains([]string{
		workv1.ConditionApplied, workv1.ConditionAvailable, workv1.ConditionStatusFeedbackSynced, workv1.ConditionDeleting,
	}, condition)
}

// rule evaluates one rule; false means that there is no condition.
func (e *evaluation) rule(ctx context.Context, rule *workv1.ConditionRule) (status.Verdict, bool) {
	var result bool
	var message string
	switch rule.Type {
	case workv1.ConditionRuleTypeWellKnownConditions:
		var known bool
		if result, message, known = wellKnown(rule.Condition, e.object); !known {
			return status.Verdict{}, false
		}
	case workv1.ConditionRuleTypeCEL:
		var fault *status.Verdict
		if result, fault = e.evaluateAll(ctx, rule); fault != nil {
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
				message = late.Message // the message for the same result
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

// evaluateAll reports whether all expressions are true. It stops at the first that is
// not.
func (e *evaluation) evaluateAll(ctx context.Context, rule *workv1.ConditionRule) (bool, *status.Verdict) {
	if len(rule.CELExpressions) == 0 {
		fault := invalid("a rule of type CEL needs at least one expression; add celExpressions")
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

// putOff returns the verdict for a rule that is put off, nil where expressions are
// evaluated: the earlier verdict, if there is one.
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

// compileFault returns the verdict for an expression that cannot be compiled: the
// author's fault or ours.
func compileFault(field string, err error) *status.Verdict {
	verdict := &status.Verdict{Status: metav1.ConditionUnknown, Reason: workv1.ReasonConditionRuleInternalError, Message: field + ": " + err.Error()}
	if errors.As(err, new(*cel.SyntaxError)) {
		verdict.Status, verdict.Reason = metav1.ConditionFalse, workv1.ReasonConditionRuleExpressionError
	}
	return verdict
}

// fault returns the verdict for an expression that failed. CEL's error may quote the
// object, so for a Secret it is withheld.
func (e *evaluation) fault(field string, err error) *status.Verdict {
	text := err.Error()
	if !errors.Is(err, cel.ErrBudget) {
		if manifest.IsSecret(e.object.GetAPIVersion(), e.object.GetKind()) {
			text = "the expression failed; the reason is withheld, because it may quote the Secret"
		}
		text = field + ": " + text
	}
	return &status.Verdict{Status: metav1.ConditionFalse, Reason: workv1.ReasonConditionRuleExpressionError, Message: text}
}
