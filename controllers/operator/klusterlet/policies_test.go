// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// TestPoliciesWaitUntilTheClusterIsRead: without the addresses of its hub, an agent could cut itself off.
func TestPoliciesWaitUntilTheClusterIsRead(t *testing.T) {
	on := func(k *operatorv1.Klusterlet) {
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
			FeatureGates: []operatorv1.FeatureGate{{Feature: "NetworkPolicies", Mode: operatorv1.FeatureGateModeTypeEnable}},
		}
	}
	of := func(s State) (applied, removed []string) {
		for _, w := range Decide(s).Writes {
			at := reconcile.TargetOf(w)
			if at.Resource != shared.PoliciesResource {
				continue
			}
			if _, ok := w.(reconcile.Remove); ok {
				removed = append(removed, at.Name)
			} else {
				applied = append(applied, at.Name)
			}
		}
		return applied, removed
	}
	s := serving(on)
	s.SecretsKnown = true
	applied, removed := of(s)
	require.Equal(t, shared.PolicyNames(), applied)
	require.Empty(t, removed)
	require.True(t, apimeta.IsStatusConditionTrue(Decide(s).Object.(*operatorv1.Klusterlet).Status.Conditions, operatorv1.ConditionSpecSupported))
	s.Reading = true
	applied, _ = of(s)
	require.Empty(t, applied)
	s.Reading, s.SecretsKnown = false, false
	applied, _ = of(s)
	require.Empty(t, applied)

	off := serving()
	off.Policies = map[string]policy{"default-deny-all": {version: "3", uid: "p"}}
	applied, removed = of(off)
	require.Empty(t, applied)
	require.Equal(t, []string{"default-deny-all"}, removed)
}
