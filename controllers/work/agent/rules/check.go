// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	gocel "github.com/google/cel-go/cel"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Problem is something in the condition rules of a work that can never work,
// whatever the object is like.
type Problem struct {
	// Field is where it stands: "conditionRules[0].celExpressions[1]".
	Field string
	// Text is what is wrong, and the fix.
	Text string
}

// Check names what in the rules for an object can never work. Of expressions it
// looks at no more than *left bytes, and takes off what it looked at: who checks
// several lists of rules bounds them together. Nothing is kept.
func (e *Evaluator) Check(rules []workv1.ConditionRule, id workv1.ResourceIdentifier, left *int) []Problem {
	var out []Problem
	if len(rules) > MaxRules {
		out = append(out, Problem{"conditionRules", fmt.Sprintf("a manifest can have %d condition rules, and this one has %d; remove some", MaxRules, len(rules))})
	}
	for i, rule := range rules[:min(len(rules), MaxRules)] {
		at := fmt.Sprintf("conditionRules[%d]", i)
		switch {
		case reserved(rule.Condition):
			out = append(out, Problem{
				at + ".condition",
				fmt.Sprintf("%q is made by the agent itself, so that the rule is passed over; choose another name", rule.Condition),
			})
			continue
		case !settable(rule.Condition):
			out = append(out, Problem{
				at + ".condition",
				fmt.Sprintf("%q is not the name of a condition, so that the rule is passed over; choose one of letters and digits", rule.Condition),
			})
			continue
		}
		out = append(out, e.checkRule(at, rule, id, left)...)
	}
	return out
}

func (e *Evaluator) checkRule(at string, rule workv1.ConditionRule, id workv1.ResourceIdentifier, left *int) []Problem {
	var out []Problem
	check := func(field, expression string, kind *gocel.Type) {
		// What is too long to be looked at here is too long for an agent as well,
		// or one of many.
		if *left -= len(expression); *left < 0 {
			return
		}
		env := e.expressions
		if kind == gocel.StringType {
			env = e.messages
		}
		if err := env.Check(expression, kind); err != nil {
			out = append(out, Problem{at + "." + field, "the condition can never be told: " + err.Error()})
		}
	}
	switch rule.Type {
	case workv1.ConditionRuleTypeWellKnownConditions:
		if !builtIn(rule.Condition, id) {
			out = append(out, Problem{
				at,
				fmt.Sprintf("nothing is built in for %s of %s, so that there will be no such condition; write a rule of type CEL", rule.Condition, id.Resource),
			})
		}
	case workv1.ConditionRuleTypeCEL:
		if len(rule.CELExpressions) == 0 {
			out = append(out, Problem{at + ".celExpressions", "a rule of type CEL needs one expression at least; add celExpressions"})
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

// builtIn tells whether wellKnown knows the condition for objects of the
// resource.
func builtIn(condition string, id workv1.ResourceIdentifier) bool {
	return condition == workv1.ConditionComplete &&
		slices.Contains(
			[]workv1.ResourceIdentifier{{Group: "batch", Resource: "jobs"}, {Resource: "pods"}},
			workv1.ResourceIdentifier{Group: id.Group, Resource: id.Resource},
		)
}
