// SPDX-License-Identifier: Apache-2.0

package addonkit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/addontest"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// tuned is an add-on whose configurations are ConfigMaps, which the hub does not read.
type tuned struct{}

func (tuned) Options() addonkit.Options {
	return addonkit.Options{
		Name: "tuned", Configs: []addonv1alpha1.ConfigGroupResource{{Resource: configMaps.Resource}}, Hashed: []schema.GroupVersionResource{configMaps},
	}
}

func (tuned) Manifests(context.Context, addonkit.Instance) ([]runtime.Object, error) { return nil, nil }

// tuning writes a ConfigMap, and returns the hash of the stored object.
func tuning(t *testing.T, h *addontest.Hub, name, value string) string {
	t.Helper()
	at := h.Admin.Resource(configMaps).Namespace("default")
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":%q},"data":{"value":%q}}`, name, value)
	u, err := at.Patch(t.Context(), name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "test"})
	require.NoError(t, err)
	hash, err := addonkit.SpecHash(u.Object)
	require.NoError(t, err)
	return hash
}

func TestTheHubIsToldWhatConfigurationsOfOtherKindsSay(t *testing.T) {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	h := addontest.New(t, tuned{}, rule("", "configmaps", "list", "watch"),
		rule(addonv1alpha1.GroupName, "clustermanagementaddons", "list", "watch"), rule(addonv1alpha1.GroupName, "clustermanagementaddons/status", "patch"))
	here := h.Install("c1", "")
	shared, own := tuning(t, h, "shared", "one"), tuning(t, h, "own", "two")

	// What the hub writes: the references to the objects in use.
	const kind = `"group":"","resource":"configmaps"`
	ref := func(name string) string {
		return fmt.Sprintf(`{%s,"desiredConfig":{"namespace":"default","name":%q}}`, kind, name)
	}
	addOns := addonv1alpha1.GroupVersion.WithResource("clustermanagementaddons")
	_, err := h.Admin.Resource(addOns).Patch(t.Context(), "tuned", types.MergePatchType, fmt.Appendf(nil,
		`{"status":{"defaultconfigReferences":[%s],"installProgressions":[{"namespace":"default","name":"p","configReferences":[%s]}]}}`,
		ref("shared"),
		ref("later")),
		metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	at := h.Admin.Resource(addontest.AddOns).Namespace("c1")
	_, err = at.Patch(
		t.Context(), "tuned", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"configs":[{%s,"namespace":"default","name":"own"}]}}`, kind),
		metav1.PatchOptions{},
	)
	require.NoError(t, err)
	_, err = at.Patch(t.Context(), "tuned", types.MergePatchType, fmt.Appendf(nil,
		`{"status":{"configReferences":[{%s,"namespace":"default","name":"own","lastObservedGeneration":0,"desiredConfig":{"namespace":"default","name":"own"}}]}}`,
		kind),
		metav1.PatchOptions{}, "status")
	require.NoError(t, err)

	says := func(wantShared, wantLater, wantOwn string) {
		t.Helper()
		h.Soon("hashes", func() error {
			addOn, err := typed.Get[addonv1alpha1.ClusterManagementAddOn](t.Context(), h.Admin, addOns, "", "tuned")
			if err != nil {
				return err
			}
			got := []string{
				addOn.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash, addOn.Status.InstallProgressions[0].ConfigReferences[0].DesiredConfig.SpecHash,
				instance(t, h, here).Status.ConfigReferences[0].DesiredConfig.SpecHash,
			}
			if want := []string{wantShared, wantLater, wantOwn}; fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Errorf("they are %q, not %q", got, want)
			}
			return nil
		})
	}
	says(shared, "", own)
	later := tuning(t, h, "later", "three")
	says(shared, later, own)
	changed := tuning(t, h, "own", "four")
	require.NotEqual(t, own, changed)
	says(shared, later, changed)
	for _, name := range []string{"shared", "own"} {
		require.NoError(t, h.Admin.Resource(configMaps).Namespace("default").Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	says("", later, changed)
}
