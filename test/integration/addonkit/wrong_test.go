// SPDX-License-Identifier: Apache-2.0

package addonkit_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/addontest"
)

// TestWhatIsWrongWithOneInstanceHarmsNoOther checks that each failed instance reports its
// cause and the remedy, and that a healthy one is neither delayed nor written.
func TestWhatIsWrongWithOneInstanceHarmsNoOther(t *testing.T) {
	h := addontest.New(t, newTenant(t))
	h.Join("h1")
	fine := h.Install("fine", "h1")
	h.Report("fine", "addon-tenant-deploy-0", "")
	h.Report("h1", "addon-tenant-deploy-hosting-fine-0", fmt.Sprintf(deployed, "fine", 1))
	tells(t, h, fine, addonv1alpha1.ConditionAvailable, addonv1alpha1.ReasonProbeAvailable)
	tells(t, h, fine, addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ReasonManifestApplied)
	undisturbed := instance(t, h, fine).ResourceVersion

	const failed = addonv1alpha1.ReasonManifestWorkApplyFailed
	for name, tc := range map[string]struct{ annotation, value, condition, reason, want string }{
		"novalues": {
			addonv1alpha1.AnnotationValues,
			"{",
			addonv1alpha1.ConditionManifestApplied,
			failed,
			`ManagedClusterAddOn novalues/tenant: metadata.annotations[addon.open-cluster-management.io/values]: is no JSON object; write for example {"Key":"value"}`,
		},
		"nokind": {annotationFault, "kind", addonv1alpha1.ConditionManifestApplied, failed, "manifest 0: "},
		"panics": {
			annotationFault,
			"panic",
			addonv1alpha1.ConditionManifestApplied,
			failed,
			"this is a bug in it, and its log has the stack trace",
		},
		"noname": {
			addonv1alpha1.AnnotationHostingClusterName,
			"",
			addonv1alpha1.ConditionHostingClusterValidity,
			addonv1alpha1.ReasonHostingClusterInvalid,
			"its name is empty; name one",
		},
		"nowhere": {
			addonv1alpha1.AnnotationHostingClusterName,
			"h9",
			addonv1alpha1.ConditionHostingClusterValidity,
			addonv1alpha1.ReasonHostingClusterInvalid,
			"hosting cluster h9 is not a managed cluster of the hub: there is no ManagedCluster with this name; join it",
		},
		"stranger": {
			annotationFault,
			"",
			addonv1alpha1.ConditionRegistrationApplied,
			addonv1alpha1.ReasonPermissionConfigPending,
			"there is no ManagedCluster stranger, so nothing is deployed and no permissions are granted; join the cluster under this name, or delete the add-on",
		},
	} {
		key := h.Enable(name, map[string]string{tc.annotation: tc.value})
		if name != "stranger" {
			h.Join(name)
		}
		tells(t, h, key, tc.condition, tc.reason, tc.want)
	}

	// An instance that is created after them is not delayed either; special characters
	// stay within a value.
	const text = "it's \"quoted\"\nand: [has, lines] {{ .ClusterName }}"
	given, err := json.Marshal(map[string]string{"Text": text})
	require.NoError(t, err)
	h.Enable("late", map[string]string{addonv1alpha1.AnnotationValues: string(given)})
	h.Join("late")
	holds(t, h, "late", "addon-tenant-deploy-0", "Deployment "+place+"/tenant-late", "Service "+place+"/tenant", "ConfigMap default/settings")
	w, err := typed.Get[workv1.ManifestWork](t.Context(), h.Admin, addontest.Works, "late", "addon-tenant-deploy-0")
	require.NoError(t, err)
	var settings corev1.ConfigMap
	require.NoError(t, json.Unmarshal(w.Spec.Workload.Manifests[2].Raw, &settings))
	require.Equal(t, map[string]string{"text": text, "mode": "Default"}, settings.Data)
	require.Equal(t, undisturbed, instance(t, h, fine).ResourceVersion)
}
