// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	gocel "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Problem is a fault in the condition rules of a work that is independent of the object.
type Problem struct {
	// Field is its location: "conditionRules[0].celExpressions[1]".
	Field string
	// Text describes the fault and the fix.
	Text string
}

// Check returns the faults in the rules for an object that are independent of its
// content. It examines at most *left bytes of expressions and subtracts what it examined,
// so that a caller can share one limit among several lists of rules. Nothing is kept.
func (e *Evaluator) Check(rules []workv1.ConditionRule, id workv1.ResourceIdentifier, left *int) []Problem {
	var out []Problem
	add := func(field, text string, args ...any) { out = append(out, Problem{field, fmt.Sprintf(text, args...)}) }
	if len(rules) > MaxRules {
		add("conditionRules", "a manifest can have %d condition rules, and this one has %d; remove some", MaxRules, len(rules))
	}
	for i, rule := range rules[:min(len(rules), MaxRules)] {
		at := fmt.Sprintf("conditionRules[%d]", i)
		switch {
		case reserved(rule.Condition):
			add(at+".condition", "%q is made by the agent itself, so the rule is ignored; choose another name", rule.Condition)
		case !settable(rule.Condition):
			add(at+".condition", "%q is not the name of a condition, so the rule is ignored; choose one of letters and digits", rule.Condition)
		default:
			out = append(out, e.checkRule(at, rule, id, left)...)
		}
	}
	return out
}

func (e *Evaluator) checkRule(at string, rule workv1.ConditionRule, id workv1.ResourceIdentifier, left *int) []Problem {
	var out []Problem
	check := func(field, expression string, kind *gocel.Type) {
		// An expression that is too long to be checked here is too long for an agent as
		// well, or one of too many.
		if *left -= len(expression); *left < 0 {
			return
		}
		env := e.expressions
		if kind == gocel.StringType {
			env = e.messages
		}
		if err := env.Check(expression, kind); err != nil {
			out = append(out, Problem{at + "." + field, "the condition can never be evaluated: " + err.Error()})
		}
	}
	switch rule.Type {
	case workv1.ConditionRuleTypeWellKnownConditions:
		if !builtIn(rule.Condition, id) {
			out = append(out, Problem{at, fmt.Sprintf(
				"nothing is built in for %s of %s, so that there will be no such condition; write a rule of type CEL", rule.Condition, id.Resource)})
		}
	case workv1.ConditionRuleTypeCEL:
		if len(rule.CELExpressions) == 0 {
			out = append(out, Problem{at + ".celExpressions", "a rule of type CEL needs at least one expression; add celExpressions"})
		}
		for i, expression := range rule.CELExpressions {
			check(fmt.Sprintf("celExpressions[%d]", i), expression, gocel.BoolType)
		}
	}
	if rule.MessageExpression != "" {
		check("messageExpression", rule.MessageExpression, gocel.StringType)
	}
	return out
}

// builtIn reports whether wellKnown has the condition for objects of the resource.
func builtIn(condition string, id workv1.ResourceIdentifier) bool {
	resource := schema.GroupResource{Group: id.Group, Resource: id.Resource}.String()
	return condition == workv1.ConditionComplete && (resource == "jobs.batch" || resource == "pods")
}
