// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

func TestAutoAcceptanceTurnsItsGateOn(t *testing.T) {
	cm := &operatorv1.ClusterManager{}
	(&InitOptions{AutoAccept: []string{"alice"},
		FeatureGates: map[string]bool{"ManifestWorkReplicaSet": false, "AddonManagement": true,
			"PlacementDebugServer": true}}).applyOptions(cm)
	require.Equal(t, []string{"alice"}, cm.Spec.RegistrationConfiguration.AutoApproveUsers)
	require.Equal(t, "ManagedClusterAutoApproval", cm.Spec.RegistrationConfiguration.FeatureGates[0].Feature)
	require.Equal(t, operatorv1.FeatureGateModeTypeDisable, cm.Spec.WorkConfiguration.FeatureGates[0].Mode)
	require.Len(t, cm.Spec.AddOnManagerConfiguration.FeatureGates, 1)
	require.Len(t, cm.Spec.PlacementConfiguration.FeatureGates, 1)
}

func TestGatesOfBothPartsAreRead(t *testing.T) {
	require.Empty(t, declaredGates(operatorv1.ClusterManagerSpec{}))
	require.Equal(t, map[string]bool{"ClusterProfile": true, "ClusterImporter": false, "ManagedServiceAccount": true}, declaredGates(operatorv1.ClusterManagerSpec{
		RegistrationConfiguration: &operatorv1.RegistrationHubConfiguration{FeatureGates: []operatorv1.FeatureGate{
			{Feature: "ClusterProfile", Mode: operatorv1.FeatureGateModeTypeEnable}, {Feature: "ClusterImporter", Mode: operatorv1.FeatureGateModeTypeDisable},
		}},
		AddOnManagerConfiguration: &operatorv1.AddOnManagerConfiguration{FeatureGates: []operatorv1.FeatureGate{
			{Feature: "ManagedServiceAccount", Mode: operatorv1.FeatureGateModeTypeEnable},
		}},
	}))
}

// TestTheSplitLayoutIsRefusedForOtherImages: the loops of the compact layout would end, and none start.
func TestTheSplitLayoutIsRefusedForOtherImages(t *testing.T) {
	live, err := typed.ToUnstructured(&operatorv1.ClusterManager{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorv1.GroupVersion.String(), Kind: "ClusterManager"},
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-manager"}, Spec: operatorv1.ClusterManagerSpec{WorkImagePullSpec: "mirror.example/work:v1.3.1"},
	})
	require.NoError(t, err)
	require.NoError(t, (&InitOptions{Layout: LayoutCompact}).checkImages(live))
	err = (&InitOptions{Layout: LayoutSplit}).checkImages(live)
	var refused *fleet.Error
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Cause, `spec.workImagePullSpec="mirror.example/work:v1.3.1"`)
	require.NoError(t, unstructured.SetNestedField(live.Object, "mirror.example/ocm-hub:v1", "spec", "workImagePullSpec"))
	require.NoError(t, (&InitOptions{Layout: LayoutSplit}).checkImages(live))
}

// TestAHubThatKeepsItsAPIsIsRecognized, whoever installed it: an adoption keeps that, too.
func TestAHubThatKeepsItsAPIsIsRecognized(t *testing.T) {
	require.False(t, KeepsAPIs(nil))
	for args, want := range map[string]bool{
		"run": false, "run --skip-remove-crds": true, "hub --skip-remove-crds=true": true, "hub --skip-remove-crds=false": false,
	} {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Args: strings.Fields(args)}}
		require.Equal(t, want, KeepsAPIs(d), args)
	}
}
