// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"errors"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// The agent of a denied cluster can read works until its last work is gone.
func TestADeniedClusterGetsNoNewContent(t *testing.T) {
	const one = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"n","name":"a"}}`
	const two = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"n","name":"b"}}`
	const changed = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"n","name":"a"},"stringData":{"k":"new"}}`
	const says = "kubectl ocm accept c1"
	orphaned := work(nil, one)
	orphaned.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	released := work(nil, one, two)
	released.DeletionTimestamp = at(now)
	for name, tc := range map[string]struct {
		old, work *workv1.ManifestWork
		code      int32
	}{
		"a new work":                    {nil, work(nil, one), 403},
		"a manifest more":               {work(nil, one), work(nil, one, two), 403},
		"a manifest that says more":     {work(nil, one), work(nil, changed), 403},
		"a manifest less":               {work(nil, one, two), work(nil, one), 0},
		"the same in another order":     {work(nil, one, two), work(nil, two, one), 0},
		"how it ends":                   {work(nil, one), orphaned, 0},
		"a work that goes and is freed": {work(nil, one), released, 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := ""
			if tc.code != 0 {
				text = says
			}
			check(
				t, send(t, server(&stated{denied: []string{"c1"}}, all), webhook.PathValidateWork, tc.old, tc.work, person),
				tc.code, text,
			)
			check(
				t, send(t, server(&stated{denied: []string{"c10"}}, all), webhook.PathValidateWork, tc.old, tc.work, person), 0, "",
			)
		})
	}
	check(
		t, send(t, server(&stated{broken: errors.New("away")}, all), webhook.PathValidateWork, nil, work(nil, one), person),
		500, "away",
	)
}
