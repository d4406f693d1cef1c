// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// written is an object that a decision applies or removes.
type written struct {
	reconcile.Target
	removed bool
}

// writesTo returns what is written of a kind.
func writesTo(s State, resource schema.GroupVersionResource) (out []written) {
	for _, w := range Decide(s).Writes {
		_, removed := w.(reconcile.Remove)
		if at := reconcile.TargetOf(w); at.Resource == resource {
			out = append(out, written{at, removed})
		}
	}
	return out
}

// TestPoliciesWaitUntilTheClusterIsRead: without the addresses of its hub, an agent could cut itself off.
func TestPoliciesWaitUntilTheClusterIsRead(t *testing.T) {
	on := func(k *operatorv1.Klusterlet) {
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
			FeatureGates: []operatorv1.FeatureGate{{Feature: "NetworkPolicies", Mode: operatorv1.FeatureGateModeTypeEnable}},
		}
	}
	of := func(s State) (applied, removed []string) {
		for _, at := range writesTo(s, shared.PoliciesResource) {
			if at.removed {
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
