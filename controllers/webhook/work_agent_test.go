// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func TestAnAgentChangesOnlyFinalizersAndAnnotationsOfItsWorks(t *testing.T) {
	const manifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"}}`
	for name, tc := range map[string]struct {
		change  func(*workv1.ManifestWork)
		message string
	}{
		"finalizers": {func(w *workv1.ManifestWork) {
			w.Finalizers = []string{"cluster.open-cluster-management.io/manifest-work-cleanup"}
		}, ""},
		"annotations": {func(w *workv1.ManifestWork) { w.Annotations = map[string]string{"a": "b"} }, ""},
		"what configurations it is of": {func(w *workv1.ManifestWork) {
			w.Annotations = map[string]string{"open-cluster-management.io/config-spec-hash": "{}"}
		}, "annotation open-cluster-management.io/config-spec-hash of a work"},
		"manifests": {func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = nil }, "the spec of a work"},
		"executor":  {func(w *workv1.ManifestWork) { w.Spec.Executor = executor("n", "robot") }, "the spec of a work"},
		"owners (CVE-2025-5187)": {func(w *workv1.ManifestWork) {
			w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "u"}}
		}, "ownerReferences"},
		"labels": {func(w *workv1.ManifestWork) { w.Labels = map[string]string{"a": "b"} }, "labels of a work"},
	} {
		t.Run(name, func(t *testing.T) {
			code := int32(403)
			if tc.message == "" {
				code = 0
			}
			// For a work of a replica set, with an owner and an executor, no right is
			// required.
			for _, dress := range []func(*workv1.ManifestWork){
				func(*workv1.ManifestWork) {},
				func(w *workv1.ManifestWork) {
					ofSet("c1.theirs")(w)
					ownedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "there", UID: "1"})(w)
					w.Spec.Executor = executor("n", "another")
				},
			} {
				old, changed := work(nil, manifest), work(nil, manifest)
				dress(old)
				dress(changed)
				tc.change(changed)
				checked := all
				checked.NilExecutorValidating = true
				h := server(&stated{}, checked)
				check(t, send(t, h, webhook.PathValidateWork, old, changed, agentOf("c1")), code, tc.message)
				// A work that is being deleted is no exception, except for the removal of
				// finalizers.
				changed.DeletionTimestamp = at(now)
				check(t, send(t, h, webhook.PathValidateWork, old, changed, agentOf("c1")), code, tc.message)
			}
		})
	}
	check(
		t, send(t, server(&stated{}, all), webhook.PathValidateWork, nil, work(nil, manifest), agentOf("c1")), 403,
		"which works there are",
	)
}
