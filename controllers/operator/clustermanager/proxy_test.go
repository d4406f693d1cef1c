// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// TestWhereTheAPIOfClustersIsNotServed: the condition says why.
func TestWhereTheAPIOfClustersIsNotServed(t *testing.T) {
	on := &operatorv1.RegistrationHubConfiguration{
		FeatureGates: []operatorv1.FeatureGate{{Feature: "ClusterProxy", Mode: operatorv1.FeatureGateModeTypeEnable}},
	}
	told := func(hosted bool, unproven error) *metav1.Condition {
		s := state(t, func(s *State) {
			s.Hosted, s.Unproven = hosted, unproven
			s.ClusterManager.Spec.RegistrationConfiguration = on
		})
		cm := s.ClusterManager.DeepCopy()
		setSupported(s, cm)
		return apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionSpecSupported)
	}
	require.Nil(t, told(false, nil))
	require.Contains(t, told(true, nil).Message, "registrationConfiguration.featureGates ClusterProxy (a hub of another cluster")
	require.Contains(t, told(false, errors.New("no authority")).Message, "registrationConfiguration.featureGates ClusterProxy (no authority)")
}

func TestTheRegistrationStaysUntilTheAuthorityIsRead(t *testing.T) {
	there := map[reconcile.Target]*unstructured.Unstructured{targetOf(apiService(nil)): apiService(nil)}
	for name, tc := range map[string]struct {
		problem error
		known   bool
		found   map[reconcile.Target]*unstructured.Unstructured
		want    bool
	}{
		"before it is read":                    {want: false},
		"before a new process has read it":     {found: there, want: true},
		"with an authority":                    {known: true, want: true},
		"without one":                          {known: true, problem: errors.New("none"), want: false},
		"without one, but with a registration": {known: true, problem: errors.New("none"), found: there, want: false},
	} {
		a := &assembly{config: Config{Authority: func() (error, bool) { return tc.problem, tc.known }}}
		require.Equal(t, tc.want, a.isProven(tc.found), name)
	}
}

func TestTheAPIOfClustersIsRegisteredWithItsGate(t *testing.T) {
	kinds := func(f Features, bundle string) (out []string) {
		objects, err := rendering{Features: f, Bundle: []byte(bundle)}.objects()
		require.NoError(t, err)
		for _, u := range objects {
			out = append(out, u.GetKind()+" "+u.GetName())
		}
		return out
	}
	const want = "APIService v1alpha1.connect.open-cluster-management.io"
	require.Contains(t, kinds(Features{ClusterProxy: true}, "bundle"), want)
	require.NotContains(t, kinds(Features{}, "bundle"), want)
	require.NotContains(t, kinds(Features{ClusterProxy: true}, ""), want, "nothing verifies its certificate")
}
