// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// What the API admits but no agent can apply yields a warning that names the field.
func TestRulesAndFieldsThatNeverWorkAreWarnedOf(t *testing.T) {
	const job = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"n","name":"a"},"spec":{"ttlSecondsAfterFinished":60}}`
	cel := func(condition string, expressions ...string) workv1.ConditionRule {
		return workv1.ConditionRule{Condition: condition, Type: workv1.ConditionRuleTypeCEL, CELExpressions: expressions}
	}
	known := func(condition string) workv1.ConditionRule {
		return workv1.ConditionRule{Condition: condition, Type: workv1.ConditionRuleTypeWellKnownConditions}
	}
	good := cel("Ready", "object.status.phase == 'Running'", "hasConditions(object.status)")
	good.MessageExpression = "result ? 'well' : object.metadata.name"
	const rule, fields = "spec.manifestConfigs[0].conditionRules[0]", "spec.manifestConfigs[0].updateStrategy.serverSideApply.ignoreFields[0]."
	for name, tc := range map[string]struct {
		manifest, resource string
		rules              []workv1.ConditionRule
		ignore             []workv1.IgnoreField
		want               []string
	}{
		"everything that works": {
			resource: "pods", rules: []workv1.ConditionRule{good, known("Complete")},
			ignore: []workv1.IgnoreField{
				{
					JSONPaths: []string{".spec.replicas"}, JSONPointers: []string{"/spec/a"},
					JQPathExpressions: []string{`.spec.env[] | select(.name == "A")`},
				},
			},
		},
		"an expression that is none": {
			rules: []workv1.ConditionRule{cel("Ready", "true", "object.")},
			want:  []string{rule + ".celExpressions[1]: the condition can never be evaluated: 1:8: Syntax error"},
		},
		"a number in place of a truth": {
			rules: []workv1.ConditionRule{cel("Ready", "1 + 1")},
			want: []string{
				rule + ".celExpressions[0]: the condition can never be evaluated: the expression gives int, and must give bool",
			},
		},
		"a variable that is not there": {
			rules: []workv1.ConditionRule{cel("Ready", "result")},
			want:  []string{"undeclared reference to 'result'"},
		},
		"a regular expression that is none": {
			rules: []workv1.ConditionRule{cel("Ready", "object.a.matches('(')")},
			want:  []string{"preparing the expression"},
		},
		"an expression that is too long": {
			rules: []workv1.ConditionRule{cel("Ready", "'"+strings.Repeat("x", 16<<10)+"' == ''")},
			want:  []string{"16384 are allowed"},
		},
		"a message that is no text": {
			rules: []workv1.ConditionRule{
				{Condition: "Ready", Type: "CEL", CELExpressions: []string{"true"}, MessageExpression: "1"},
			},
			want: []string{
				rule + ".messageExpression: the condition can never be evaluated: the expression gives int, and must give string",
			},
		},
		"a rule without expressions": {
			rules: []workv1.ConditionRule{cel("Ready")},
			want:  []string{rule + ".celExpressions: a rule of type CEL needs at least one expression"},
		},
		"conditions of the agent": {
			rules: []workv1.ConditionRule{
				cel("Applied", "true"), cel("Available", "true"), cel("StatusFeedbackSynced", "true"), known("Deleting"),
			},
			want: []string{
				rule + `.condition: "Applied" is made by the agent itself, so the rule is ignored`,
				`conditionRules[1].condition: "Available"`,
				`conditionRules[2].condition: "StatusFeedbackSynced"`, `conditionRules[3].condition: "Deleting"`,
			},
		},
		"a name that is none": {
			rules: []workv1.ConditionRule{cel("not valid!", "true")},
			want:  []string{rule + `.condition: "not valid!" is not the name of a condition`},
		},
		"nothing is built in for that": {
			rules: []workv1.ConditionRule{known("Progressing")},
			want:  []string{rule + ": nothing is built in for Progressing of configmaps"},
		},
		"nothing is built in for others": {
			rules: []workv1.ConditionRule{known("Complete")},
			want:  []string{rule + ": nothing is built in for Complete of configmaps"},
		},
		"too many rules": {
			rules: func() (out []workv1.ConditionRule) {
				for i := range 17 {
					out = append(out, cel(fmt.Sprint("C", i), "true"))
				}
				return out
			}(), want: []string{"spec.manifestConfigs[0].conditionRules: a manifest can have 16 condition rules, and this one has 17"},
		},
		"fields that cannot be ignored": {
			ignore: []workv1.IgnoreField{
				{JSONPaths: []string{".a", ".a["}, JSONPointers: []string{"a"}, JQPathExpressions: []string{".a |"}},
			},
			want: []string{
				fields + `jsonPaths[1]: ".a[" `, fields + `jsonPointers[0]: "a" must begin with "/"`,
				fields + `jqPathExpressions[0]: ".a |" `,
			},
		},
		"too many fields": {
			ignore: []workv1.IgnoreField{{JSONPaths: strings.Split(strings.Repeat(".a ", 101)[:302], " ")}},
			want:   []string{"updateStrategy.serverSideApply.ignoreFields: a strategy may have 100 expressions"},
		},
		"a job that would run for ever": {
			manifest: job,
			want: []string{
				"spec.workload.manifests[0]: the Job is created and run again each time its ttlSecondsAfterFinished removes it; " +
					"add a condition rule for Complete",
			},
		},
		"a job with a rule for Complete": {manifest: job, resource: "jobs", rules: []workv1.ConditionRule{known("Complete")}},
		"a job without a time to live":   {manifest: strings.Replace(job, `"ttlSecondsAfterFinished":60`, "", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.manifest == "" {
				tc.manifest = oneMap
			}
			w := work(nil, tc.manifest)
			c := workv1.ManifestConfigOption{
				ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "n", Name: "a"},
				ConditionRules:     tc.rules,
			}
			if tc.resource != "" {
				c.ResourceIdentifier.Resource = tc.resource
			}
			if tc.resource == "jobs" {
				c.ResourceIdentifier.Group = "batch"
			}
			if tc.ignore != nil {
				c.UpdateStrategy = &workv1.UpdateStrategy{
					Type:            workv1.UpdateStrategyTypeServerSideApply,
					ServerSideApply: &workv1.ServerSideApplyConfig{IgnoreFields: tc.ignore},
				}
			}
			w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{c}
			h := server(&stated{}, all)
			response := send(t, h, webhook.PathValidateWork, nil, w, person)
			require.True(t, response.Allowed, "none of it is refused")
			require.Len(t, response.Warnings, len(tc.want), "%v", response.Warnings)
			for i, want := range tc.want {
				require.Contains(t, response.Warnings[i], want)
			}
			require.Empty(
				t, send(t, h, webhook.PathValidateWork, w, w, person).Warnings,
				"an update that leaves the spec alone gets no warning",
			)
		})
	}
}

// Expressions are compiled during admission, so only a bounded amount of them is checked.
func TestAdviceIsBounded(t *testing.T) {
	w := work(nil, oneMap)
	for range 200 {
		w.Spec.ManifestConfigs = append(w.Spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Name: "a"},
			ConditionRules: []workv1.ConditionRule{
				{Condition: "Ready", Type: "CEL", CELExpressions: []string{"'" + strings.Repeat("x", 1024) + "'"}},
			},
		})
	}
	warnings := send(t, server(&stated{}, all), webhook.PathValidateWork, nil, w, person).Warnings
	require.Len(t, warnings, 8)
	require.Equal(t, "and 56 more like these", warnings[7], "64 of 200 KiB of expressions are compiled")
}

func TestTheLimitOfManifestsCanBeChosen(t *testing.T) {
	limited := func(limit int) http.Handler {
		return webhook.NewServer(webhook.Options{
			Hub: &stated{}, Features: func() webhook.Features { return all }, Clock: clocktesting.NewFakePassiveClock(now),
			ManifestLimit: limit,
		}).Handler()
	}
	check(t, send(t, limited(len(oneMap)), webhook.PathValidateWork, nil, work(nil, oneMap), person), 0, "")
	check(t, send(t, limited(len(oneMap)-1), webhook.PathValidateWork, nil, work(nil, oneMap), person), 400,
		fmt.Sprintf("the size of manifests is %d bytes which exceeds the %d limit", len(oneMap), len(oneMap)-1))
	check(
		t, send(t, limited(len(oneMap)-1), webhook.PathValidateWorkSet, nil, set(template(nil, oneMap)), person), 400,
		"limit",
	)
	check(t, send(t, limited(0), webhook.PathValidateWork, nil, work(nil, oneMap), person), 0, "")
}
