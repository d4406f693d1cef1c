// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
)

// A hub run by OCM's own operator has four webhooks and no lease of ours, and hub init
// leaves it alone: check expects no more, and suggests nothing that would be refused.
func TestAHubOfAnotherOperatorIsJudgedByWhatItHas(t *testing.T) {
	raw, err := os.ReadFile("testdata/fleet.yaml")
	require.NoError(t, err)
	var kept []string
	for _, document := range strings.Split(string(raw), "\n---\n") {
		switch {
		case strings.Contains(document, "clustermanager-lock"), strings.Contains(document, "name: managedclustersetvalidators."),
			strings.Contains(document, "name: placementvalidators."), strings.Contains(document, "name: manifestworkreplicasetvalidators."):
			continue
		case strings.Contains(document, "kind: Deployment"):
			document = strings.Replace(document, "  labels: {open-cluster-management.io/created-by-clustermanager: cluster-manager}\n", "", 1)
			require.NotContains(t, document, "created-by-clustermanager")
			document = strings.Replace(document, "ghcr.io/kubectl-ocm/ocm-hub:v0.1.0", "quay.io/open-cluster-management/registration-operator:v1.3.1", 1)
		}
		kept = append(kept, strings.Replace(document, "clientConfig: {}", "clientConfig: {caBundle: Q0E=}", 1))
	}
	s := newScene(t)
	s.hub = apitest.New(t, created, strings.Join(kept, "\n---\n"), `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: manifestworkvalidators.admission.work.open-cluster-management.io}
webhooks: [{name: manifestworkvalidators.admission.work.open-cluster-management.io, clientConfig: {caBundle: Q0E=}}]
`)
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub, "spoke": s.spoke}))

	got := s.run("check", "hub", "--context", "hub")
	require.Contains(t, got.out, "✓ the hub is run by another operator, quay.io/open-cluster-management/registration-operator:v1.3.1")
	require.Contains(t, got.out, "✓ 5 webhooks answer", "its four webhooks and the conversion")
	require.NotContains(t, got.out, "hub init")
	require.Contains(
		t, got.out, "kubectl rollout restart -n open-cluster-management deploy/cluster-manager --context hub",
		"its own operator restores what is missing",
	)
	require.NotContains(t, s.run("hub", "status", "--context", "hub").out, "\n! ")
}
