// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

func TestConfigurationsAreNamedByTheirResource(t *testing.T) {
	config := func(group, resource, namespace, name string) addonv1alpha1.AddOnConfig {
		return addonv1alpha1.AddOnConfig{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: group, Resource: resource},
			ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: namespace, Name: name},
		}
	}
	for text, want := range map[string]addonv1alpha1.AddOnConfig{
		"configmaps/a/b":                 config("", "configmaps", "a", "b"),
		"/configmaps/a/b":                config("", "configmaps", "a", "b"),
		"addondeploymentconfigs/a/b":     config(addonv1alpha1.GroupName, "addondeploymentconfigs", "a", "b"),
		"addontemplates//b":              config(addonv1alpha1.GroupName, "addontemplates", "", "b"),
		"example.com/things/a/b":         config("example.com", "things", "a", "b"),
		"example.com/clusterthings//b.c": config("example.com", "clusterthings", "", "b.c"),
	} {
		got, err := ParseConfig(text)
		require.NoError(t, err, text)
		require.Empty(t, cmp.Diff(want, got), text)
	}
	for _, text := range []string{"", "a", "a/b", "//a", "a/b/", "a/b/c/", "a/b/c/d/e"} {
		_, err := ParseConfig(text)
		require.ErrorContains(t, err, "wrong configuration", text)
	}
}

func TestRightsOfAgentsAreNamedByTheirRole(t *testing.T) {
	single := func(namespace, kind, name string) addonv1alpha1.HubPermissionConfig {
		return addonv1alpha1.HubPermissionConfig{Type: addonv1alpha1.HubPermissionTypeSingleNamespace,
			SingleNamespace: &addonv1alpha1.SingleNamespaceBindingConfig{
				Namespace: namespace, RoleRef: addonv1alpha1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: kind, Name: name},
			}}
	}
	own := addonv1alpha1.HubPermissionConfig{
		Type:           addonv1alpha1.HubPermissionTypeCurrentCluster,
		CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: "reader"},
	}
	for text, want := range map[string]addonv1alpha1.HubPermissionConfig{
		"reader": own, "clusterrole/reader": own, "ClusterRole/reader": own,
		"shared/role/writer":        single("shared", "Role", "writer"),
		"shared/clusterrole/writer": single("shared", "ClusterRole", "writer"),
	} {
		got, err := hubPermission(text)
		require.NoError(t, err, text)
		require.Empty(t, cmp.Diff(want, got), text)
	}
	for _, text := range []string{"", "role/reader", "clusterrole/", "/role/x", "a/b/c", "a/role/b/c"} {
		_, err := hubPermission(text)
		require.ErrorContains(t, err, "wrong permission", text)
	}
}

func TestTheDefaultTemplateIsReplacedAndTheRestStays(t *testing.T) {
	other := addonv1alpha1.ConfigMeta{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "configmaps"}}
	kind := addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: addonv1alpha1.ResourceTemplate}
	deployment := addonv1alpha1.ConfigMeta{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName,
		Resource: addonv1alpha1.ResourceDeploymentConfig}}
	template := func(name string) addonv1alpha1.ConfigMeta {
		return addonv1alpha1.ConfigMeta{ConfigGroupResource: kind, DefaultConfig: &addonv1alpha1.ConfigReferent{Name: name}}
	}
	for name, tc := range map[string]struct {
		before []addonv1alpha1.ConfigMeta
		old    string
		after  []addonv1alpha1.ConfigMeta
	}{
		"nothing yet": {nil, "", []addonv1alpha1.ConfigMeta{template("new"), deployment}},
		"another one": {[]addonv1alpha1.ConfigMeta{other, deployment, template("old")}, "old",
			[]addonv1alpha1.ConfigMeta{other, deployment, template("new")}},
		"the kind alone": {
			[]addonv1alpha1.ConfigMeta{{ConfigGroupResource: kind}},
			"",
			[]addonv1alpha1.ConfigMeta{template("new"), deployment},
		},
		"a default that is none": {[]addonv1alpha1.ConfigMeta{template(addonv1alpha1.ReservedNoDefault)}, "",
			[]addonv1alpha1.ConfigMeta{template("new"), deployment}},
	} {
		a := &addonv1alpha1.ClusterManagementAddOn{Spec: addonv1alpha1.ClusterManagementAddOnSpec{SupportedConfigs: tc.before}}
		require.Equal(t, tc.old, setDefault(a, "new"), name)
		require.Empty(t, cmp.Diff(tc.after, a.Spec.SupportedConfigs), name)
	}
}

// An agent that still runs as before is not what was asked for.
func TestAnAddOnWhoseObjectsCannotBeAppliedIsNotThere(t *testing.T) {
	refused := metav1.Condition{Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionFalse,
		Message: "failed to apply the manifests of addon: no"}
	available := metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		why        string
		want       Info
	}{
		"it works":                  {[]metav1.Condition{available}, "", Info{Enabled: 1, Available: 1}},
		"it works as it did before": {[]metav1.Condition{available, refused}, refused.Message, Info{Enabled: 1, Degraded: 1}},
		"it says that it works badly": {
			[]metav1.Condition{available, {Type: addonv1alpha1.ConditionDegraded, Status: metav1.ConditionTrue}},
			"",
			Info{Enabled: 1, Degraded: 1},
		},
		"it does not work": {
			[]metav1.Condition{{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}, refused},
			refused.Message,
			Info{Enabled: 1, Unavailable: 1},
		},
		"it does not work, degraded": {
			[]metav1.Condition{{
				Type:   addonv1alpha1.ConditionAvailable,
				Status: metav1.ConditionFalse,
			},
				{Type: addonv1alpha1.ConditionDegraded, Status: metav1.ConditionTrue}},
			"",
			Info{Enabled: 1, Unavailable: 1},
		},
		"nobody knows": {
			[]metav1.Condition{{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionUnknown}},
			"",
			Info{Enabled: 1},
		},
		"not on the hosting cluster": {
			[]metav1.Condition{{Type: addonv1alpha1.ConditionHostingManifestApplied, Status: metav1.ConditionFalse,
				Message: "m"}},
			"m",
			Info{Enabled: 1},
		},
		"one that works has a message": {
			[]metav1.Condition{{Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionTrue, Message: "m"}},
			"",
			Info{Enabled: 1},
		},
	} {
		a := &addonv1alpha1.ManagedClusterAddOn{}
		a.Status.Conditions = tc.conditions
		require.Equal(t, tc.why, unappliedObjects(a), name)
		got := Info{}
		got.count(a)
		require.Equal(t, tc.want, got, name)
	}
}

// An add-on that worked before the change still works, but that does not mean the change is
// complete. The conditions of addon-framework do not say which spec they are about.
func TestAnAddOnIsBehindItsSpec(t *testing.T) {
	said := func(kind string, of int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: of}
	}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		hosted     bool
		want       string
	}{
		"nothing is said": {},
		"by the field's framework": {conditions: []metav1.Condition{said(addonv1alpha1.ConditionRegistrationApplied, 0),
			said(addonv1alpha1.ConditionManifestApplied, 0)}},
		"all is done": {conditions: []metav1.Condition{said(addonv1alpha1.ConditionRegistrationApplied, 3),
			said(addonv1alpha1.ConditionManifestApplied, 3)}},
		"not seen": {conditions: []metav1.Condition{said(addonv1alpha1.ConditionRegistrationApplied, 2),
			said(addonv1alpha1.ConditionManifestApplied, 2)}, want: "its controller has not seen the change yet"},
		"seen and not applied": {conditions: []metav1.Condition{said(addonv1alpha1.ConditionRegistrationApplied, 3),
			said(addonv1alpha1.ConditionManifestApplied, 2)}, want: "its current manifests are not applied yet"},
		"not applied on the other cluster": {conditions: []metav1.Condition{said(addonv1alpha1.ConditionManifestApplied, 3),
			said(addonv1alpha1.ConditionHostingManifestApplied, 2)}, hosted: true,
			want: "its current manifests are not applied yet on the hosting cluster"},
		"left over of the other cluster": {conditions: []metav1.Condition{said(addonv1alpha1.ConditionManifestApplied, 3),
			said(addonv1alpha1.ConditionHostingManifestApplied, 2)}},
	} {
		a := &addonv1alpha1.ManagedClusterAddOn{}
		a.Generation, a.Status.Conditions = 3, tc.conditions
		if tc.hosted {
			a.Annotations = map[string]string{addonv1alpha1.AnnotationHostingClusterName: "other"}
		}
		require.Equal(t, tc.want, pendingChange(a), name)
	}
}
