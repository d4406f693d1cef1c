// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/rules"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(raw))
	return u
}

const (
	configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {app: web}}, data: {ready: "true", text: a long text}}`
	job       = `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, status: {conditions: [{type: %s, status: "%s"}]}}`
	pod       = `{apiVersion: v1, kind: Pod, metadata: {name: p}, status: {phase: %s}}`
)

func known(condition string) workv1.ConditionRule {
	return workv1.ConditionRule{Condition: condition, Type: workv1.ConditionRuleTypeWellKnownConditions}
}

func expression(condition string, expressions ...string) workv1.ConditionRule {
	return workv1.ConditionRule{Condition: condition, Type: workv1.ConditionRuleTypeCEL, CELExpressions: expressions}
}

func with(r workv1.ConditionRule, message, messageExpression string) workv1.ConditionRule {
	r.Message, r.MessageExpression = message, messageExpression
	return r
}

func text(v status.RuleVerdict) string {
	return fmt.Sprintf("%s %s %s: %s", v.Condition, v.Status, v.Reason, v.Message)
}

// evaluator is shared by all tests, for its cache of compiled expressions.
var evaluator = rules.New()

// evaluate is a round over one manifest.
func evaluate(ctx context.Context, list []workv1.ConditionRule, of *unstructured.Unstructured) []status.RuleVerdict {
	got, _ := evaluator.Round(clock.RealClock{}).Evaluate(ctx, list, of, nil)
	return got
}

func TestOneRuleMakesOneCondition(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		object string
		rule   workv1.ConditionRule
		want   string
	}{
		"a job that runs": {
			fmt.Sprintf(job, "Suspended", "True"),
			known("Complete"),
			"Complete False ConditionRuleEvaluated: Job is not finished",
		},
		"a job that is done": {
			fmt.Sprintf(job, "Complete", "True"),
			known("Complete"),
			"Complete True ConditionRuleEvaluated: Job is finished",
		},
		"a job that failed": {
			fmt.Sprintf(job, "Failed", "True"),
			known("Complete"),
			"Complete True ConditionRuleEvaluated: Job is finished",
		},
		"a job that is not so": {
			fmt.Sprintf(job, "Complete", "False"),
			known("Complete"),
			"Complete False ConditionRuleEvaluated: Job is not finished",
		},
		"a job without status": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j}}`,
			known("Complete"),
			"Complete False ConditionRuleEvaluated: Job is not finished",
		},
		"a pod that runs": {
			fmt.Sprintf(pod, "Running"),
			known("Complete"),
			"Complete False ConditionRuleEvaluated: Pod is in phase Running",
		},
		"a pod that is done": {
			fmt.Sprintf(pod, "Succeeded"),
			known("Complete"),
			"Complete True ConditionRuleEvaluated: Pod is in phase Succeeded",
		},
		"a pod that failed": {
			fmt.Sprintf(pod, "Failed"),
			known("Complete"),
			"Complete True ConditionRuleEvaluated: Pod is in phase Failed",
		},
		"nothing is built in for the kind":      {configMap, known("Complete"), ""},
		"nothing is built in for the condition": {fmt.Sprintf(job, "Complete", "True"), known("Progressing"), ""},
		"nothing is built in for another group": {
			`{apiVersion: example.com/v1, kind: Job, metadata: {name: j}}`,
			known("Complete"),
			"",
		},
		"a message replaces the built-in one": {
			fmt.Sprintf(pod, "Failed"), with(known("Complete"), "it is over", ""), "Complete True ConditionRuleEvaluated: it is over",
		},
		"an expression tells the message of a built-in rule": {
			fmt.Sprintf(pod, "Failed"), with(known("Complete"), "it is over", "result ? object.metadata.name + ' ' + object.status.phase : ''"),
			"Complete True ConditionRuleEvaluated: p Failed",
		},
		"an expression that is true": {
			configMap,
			expression("Ready", "object.data.ready == 'true'"),
			"Ready True ConditionRuleEvaluated: Manifest is Ready",
		},
		"an expression that is false": {
			configMap,
			expression("Ready", "object.data.ready == 'no'"),
			"Ready False ConditionRuleEvaluated: Manifest is not Ready",
		},
		"all have to be true": {
			configMap,
			expression("Ready", "true", "false"),
			"Ready False ConditionRuleEvaluated: Manifest is not Ready",
		},
		"the first that is false ends it": {
			configMap,
			expression("Ready", "false", "object.absent.key == 1"),
			"Ready False ConditionRuleEvaluated: Manifest is not Ready",
		},
		"an empty message of an expression leaves the message": {
			configMap, with(expression("Ready", "true"), "by hand", "''"), "Ready True ConditionRuleEvaluated: by hand",
		},
		"the rule of the guide": {
			`{apiVersion: batch/v1, kind: Job, status: {failed: 2}}`,
			with(expression("Degraded", "object.?status.failed.orValue(0) > 0"), "", "string(object.?status.failed.orValue(0)) + ' pods failed'"),
			"Degraded True ConditionRuleEvaluated: 2 pods failed",
		},
		"the rule of the guide without a status": {
			`{apiVersion: batch/v1, kind: Job}`, expression("Degraded", "object.?status.failed.orValue(0) > 0"),
			"Degraded False ConditionRuleEvaluated: Manifest is not Degraded",
		},
		"an object with conditions": {
			fmt.Sprintf(job, "Complete", "True"), expression("Done", "hasConditions(object.status) && object.status.conditions.exists(c, c.type == 'Complete')"),
			"Done True ConditionRuleEvaluated: Manifest is Done",
		},
		"an object with no conditions": {
			`{apiVersion: v1, kind: Pod, status: {conditions: []}}`,
			expression("Done", "hasConditions(object.status)"),
			"Done False ConditionRuleEvaluated: Manifest is not Done",
		},
		"an object with a status of no kind": {
			`{apiVersion: v1, kind: Pod, status: {}}`,
			expression("Done", "hasConditions(object.status)"),
			"Done False ConditionRuleEvaluated: Manifest is not Done",
		},
		"conditions that are no list": {
			`{apiVersion: v1, kind: Pod, status: {conditions: text}}`,
			expression("Done", "hasConditions(object.status)"),
			"Done False ConditionRuleEvaluated: Manifest is not Done",
		},
		"an expression that cannot be read": {
			configMap,
			expression("Ready", "true", "object."),
			"Ready False ConditionRuleExpressionError: celExpressions[1]: 1:8: Syntax error",
		},
		"an expression that gives no bool": {
			configMap,
			expression("Ready", "1 + 1"),
			"Ready False ConditionRuleExpressionError: celExpressions[0]: the expression gives int, and must give bool",
		},
		"an expression that turns out so": {
			configMap,
			expression("Ready", "object.data.ready"),
			"Ready False ConditionRuleExpressionError: celExpressions[0]: the expression gives string, and must give bool",
		},
		"an expression that fails": {
			configMap,
			expression("Ready", "object.status.ready"),
			"Ready False ConditionRuleExpressionError: celExpressions[0]: no such key: status",
		},
		"result is known to messages alone": {
			configMap,
			expression("Ready", "result"),
			"Ready False ConditionRuleExpressionError: celExpressions[0]: 1:1: undeclared reference to 'result'",
		},
		"a message that cannot be evaluated": {
			configMap,
			with(expression("Ready", "true"), "by hand", "object.absent"),
			"Ready False ConditionRuleExpressionError: messageExpression: no such key: absent",
		},
		"a message that is no text": {
			configMap,
			with(expression("Ready", "true"), "", "1"),
			"Ready False ConditionRuleExpressionError: messageExpression: the expression gives int, and must give string",
		},
		"a program that cannot be prepared": {
			configMap,
			expression("Ready", "object.data.text.matches('(')"),
			"Ready Unknown ConditionRuleInternalError: celExpressions[0]: preparing the expression: ",
		},
		"an unknown type": {
			configMap,
			workv1.ConditionRule{Condition: "Ready", Type: "Lua"},
			"Ready Unknown ConditionRuleInvalid: unrecognized condition rule type Lua",
		},
		"a rule without expressions": {
			configMap,
			expression("Ready"),
			"Ready Unknown ConditionRuleInvalid: a rule of type CEL needs at least one expression",
		},
		"a condition that the agent makes":   {configMap, expression("Applied", "false"), ""},
		"a condition that has no valid name": {configMap, expression("not valid!", "true"), ""},
		"a condition without a name":         {configMap, expression("", "true"), ""},
		"a secret is not quoted in an error": {
			`{apiVersion: v1, kind: Secret, data: {k: cGFzc3dvcmQ=}}`,
			expression("Ready", "int(object.data.k) == 1"),
			"Ready False ConditionRuleExpressionError: celExpressions[0]: the expression failed; the reason is withheld",
		},
		"a secret may be counted nevertheless": {
			`{apiVersion: v1, kind: Secret, data: {k: cGFzc3dvcmQ=}}`,
			expression("Ready", "size(object.data) == 1"),
			"Ready True ConditionRuleEvaluated: Manifest is Ready",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := evaluate(t.Context(), []workv1.ConditionRule{tc.rule}, object(t, tc.object))
			if tc.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Truef(t, strings.HasPrefix(text(got[0]), tc.want), "%s\ndoes not begin with\n%s", text(got[0]), tc.want)
			require.NotContains(t, got[0].Message, "cGFzc3dvcmQ=")
		})
	}
}

func TestRulesDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	got := evaluate(t.Context(), []workv1.ConditionRule{
		expression("A", "object."), expression("B", "true"), expression("B", "false"), known("Complete"), expression("C", "false"),
	}, object(t, configMap))
	var names []string
	for _, v := range got {
		names = append(names, v.Condition+" "+string(v.Status))
	}
	require.Equal(t, []string{"A False", "B True", "C False"}, names)
}

// costly is an expression that costs more than a manifest may, though it takes no time:
// searching one long text in another is charged at the product of their lengths.
func costly() workv1.ConditionRule {
	return expression("Costly", slices.Repeat([]string{"!object.data.text.contains('" + strings.Repeat("b", 200) + "')"}, 200)...)
}

func TestTheRulesOfAManifestShareABudget(t *testing.T) {
	t.Parallel()
	large := object(t, configMap)
	require.NoError(t, unstructured.SetNestedField(large.Object, strings.Repeat("a", 1<<18), "data", "text"))
	got := evaluate(t.Context(), []workv1.ConditionRule{costly(), expression("Next", "true")}, large)
	require.Equal(t, "Costly False ConditionRuleExpressionError: CEL evaluation budget exceeded", text(got[0]))
	require.Equal(t, "Next False ConditionRuleExpressionError: CEL evaluation budget exceeded", text(got[1]))
	got = evaluate(t.Context(), []workv1.ConditionRule{expression("Next", "true")}, large)
	require.Equal(t, metav1.ConditionTrue, got[0].Status, "the next round has a budget of its own")
}

// TestTheManifestsOfARoundShareWhatItMayCost has 500 manifests whose rules use up the
// limit of one: after a few of them, expressions are put off, and nothing else.
func TestTheManifestsOfARoundShareWhatItMayCost(t *testing.T) {
	t.Parallel()
	const late = "not evaluated yet, because the condition rules of this work together took too long; " +
		"evaluation continues after a minute; make their expressions cheaper, or split the work"
	large := object(t, fmt.Sprintf(job, "Complete", "True"))
	require.NoError(t, unstructured.SetNestedField(large.Object, strings.Repeat("a", 1<<18), "data", "text"))
	round := evaluator.Round(clock.RealClock{})
	evaluated := 0
	for i := range 500 {
		got, put := round.Evaluate(t.Context(), []workv1.ConditionRule{costly(), known("Complete")}, large, nil)
		if put {
			require.Equal(t, "Costly Unknown ConditionRuleInternalError: "+late, text(got[0]))
			require.Equal(t,
				"Complete True ConditionRuleEvaluated: Job is finished", text(got[1]), "a built-in rule costs nothing")
			continue
		}
		require.Equal(t, evaluated, i, "once rules are put off, all are")
		require.Equal(t, "Costly False ConditionRuleExpressionError: CEL evaluation budget exceeded", text(got[0]))
		evaluated++
	}
	require.Positive(t, evaluated)
	require.Less(t, evaluated, 10)
	got, put := round.Evaluate(t.Context(), []workv1.ConditionRule{with(known("Complete"), "", "'told'")}, large, nil)
	require.True(t, put, "a message is an expression")
	require.Equal(t, "Complete True ConditionRuleEvaluated: Job is finished", text(got[0]), "only the message is put off")
	going := large.DeepCopy()
	going.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	got, put = round.Evaluate(t.Context(), []workv1.ConditionRule{expression("Complete", "true")}, going, nil)
	require.False(t, put, "rules of an object that is being deleted are not put off")
	require.Equal(t, metav1.ConditionTrue, got[0].Status)
	_, put = evaluator.Round(clock.RealClock{}).Evaluate(t.Context(), []workv1.ConditionRule{costly()}, large, nil)
	require.False(t, put, "the next round may cost as much")
}

// TestTheManifestsOfARoundShareItsTime has expressions that cost little but take long.
func TestTheManifestsOfARoundShareItsTime(t *testing.T) {
	t.Parallel()
	slow := &slowClock{}
	round := evaluator.Round(slow)
	evaluated := 0
	for range 500 {
		if _, put := round.Evaluate(t.Context(), []workv1.ConditionRule{expression("A", "true")}, object(t, configMap), nil); !put {
			evaluated++
		}
	}
	require.Equal(t, 10, evaluated, "of a second each")
}

// slowClock advances by a second each time it is read.
type slowClock struct{ at time.Duration }

func (c *slowClock) Now() time.Time {
	c.at += time.Second
	return time.Unix(0, 0).Add(c.at)
}

func (c *slowClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func TestAResultIsSmall(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 3000)
	got := evaluate(t.Context(), []workv1.ConditionRule{
		with(expression("A", "true"), long, ""), with(expression("B", "true"), "", "'"+long+"'"), with(expression("C", "true"), "\xff\xfe", ""),
	}, object(t, configMap))
	for _, v := range got {
		require.LessOrEqual(t, len(v.Message), 1024)
		require.True(t, utf8.ValidString(v.Message))
	}
	many := make([]workv1.ConditionRule, 100)
	for i := range many {
		many[i] = expression(fmt.Sprintf("C%d", i), "true")
	}
	got = evaluate(t.Context(), many, object(t, configMap))
	require.Len(t, got, rules.MaxRules)
	require.Equal(t,
		"C15 Unknown ConditionRuleInvalid: a manifest can have 16 condition rules, and this one has 100; remove some",
		text(got[15]))
}

func TestAnEndedContextEndsTheRules(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := evaluate(ctx, []workv1.ConditionRule{expression("A", "true")}, object(t, configMap))
	require.Equal(t,
		"A False ConditionRuleExpressionError: celExpressions[0]: evaluating took too long: context canceled",
		text(got[0]))
}

// FuzzRule looks for rules that panic, hang, or make a condition that an API server
// refuses.
func FuzzRule(f *testing.F) {
	f.Add("CEL", "Ready", "object.data.ready == 'true'", "by hand", "object.metadata.name + string(result)")
	f.Add("WellKnownConditions", "Complete", "", "", "object.status.conditions[0].type")
	f.Add("CEL", "Applied", "hasConditions(object.status)", "\xff", "''")
	f.Add("", "a/b", "[[1]].map(t, [t,t,t,t]).map(t, [t,t,t,t]) == [[]]", "", "'%s'.format([object])")
	done := object(f, fmt.Sprintf(job, "Complete", "True"))
	f.Fuzz(func(t *testing.T, kind, condition, expr, message, messageExpression string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, _ := evaluator.Round(clock.RealClock{}).Evaluate(ctx, []workv1.ConditionRule{{
			Type: workv1.ConditionRuleType(kind), Condition: condition, CELExpressions: []string{expr}, Message: message, MessageExpression: messageExpression,
		}}, done, nil)
		require.NoError(t, ctx.Err())
		require.LessOrEqual(t, len(got), 1)
		for _, v := range got {
			require.NotContains(t, []string{"", "Applied", "Available", "StatusFeedbackSynced", "Deleting"}, v.Condition)
			require.Contains(t, []metav1.ConditionStatus{"True", "False", "Unknown"}, v.Status)
			require.True(t, strings.HasPrefix(v.Reason, workv1.ReasonPrefixConditionRule))
			require.LessOrEqual(t, len(v.Message), 1024)
			require.True(t, utf8.ValidString(v.Message))
		}
	})
}
