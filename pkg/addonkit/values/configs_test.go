// SPDX-License-Identifier: Apache-2.0

package values

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// configured is an instance with these configurations, and how to read them.
func configured(t *testing.T, specs ...addonv1alpha1.AddOnDeploymentConfigSpec) (addonkit.Instance, Configs) {
	t.Helper()
	i := instance()
	i.AddOn.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "configmaps"}}}
	i.Of = &addonv1alpha1.ClusterManagementAddOn{}
	var objects []runtime.Object
	for n, spec := range specs {
		name := string(rune('a' + n))
		u, err := typed.ToUnstructured(&addonv1alpha1.AddOnDeploymentConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "AddOnDeploymentConfig"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec,
		})
		require.NoError(t, err)
		objects = append(objects, u)
		i.Of.Spec.SupportedConfigs = append(i.Of.Spec.SupportedConfigs, addonv1alpha1.ConfigMeta{ConfigGroupResource: Kind,
			DefaultConfig: &addonv1alpha1.ConfigReferent{Namespace: "default", Name: name}})
		i.AddOn.Status.ConfigReferences = append(i.AddOn.Status.ConfigReferences, addonv1alpha1.ConfigReference{
			ConfigGroupResource: Kind,
			DesiredConfig:       &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "default", Name: name}, SpecHash: "1"},
		})
	}
	return i, NewConfigs(fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...))
}

func pointer(s string) *string { return &s }

func TestEveryConfigurationCountsTheFirstMost(t *testing.T) {
	i, configs := configured(t,
		addonv1alpha1.AddOnDeploymentConfigSpec{
			AgentInstallNamespace: pointer("first"),
			CustomizedVariables:   []addonv1alpha1.CustomizedVariable{{Name: "Level", Value: "1"}},
			NodePlacement:         &addonv1alpha1.NodePlacement{Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}},
			ResourceRequirements: []addonv1alpha1.ContainerResourceRequirements{{
				ContainerID: "deployments:hello:(?:a|b)",
				Resources:   corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
			}},
		},
		addonv1alpha1.AddOnDeploymentConfigSpec{
			AgentInstallNamespace: pointer("second"),
			CustomizedVariables: []addonv1alpha1.CustomizedVariable{{
				Name:  "Level",
				Value: "2",
			}, {
				Name:  "Name",
				Value: "x",
			}, {
				Name:  NodeSelector,
				Value: "no map",
			}},
			NodePlacement:        &addonv1alpha1.NodePlacement{NodeSelector: map[string]string{"os": "linux"}, Tolerations: []corev1.Toleration{{Key: "b"}}},
			ProxyConfig:          addonv1alpha1.ProxyConfig{HTTPSProxy: "https://p", NoProxy: "local", CABundle: []byte("PEM")},
			ResourceRequirements: []addonv1alpha1.ContainerResourceRequirements{{ContainerID: "*:.+:.+"}},
		})
	got, err := configs.Values(t.Context(), i)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"Level": "1", "Name": "x",
		NodeSelector: map[string]any{"os": "linux"},
		Tolerations:  []any{map[string]any{"key": "a", "operator": "Exists"}},
		HTTPProxy:    "", HTTPSProxy: "https://p", NoProxy: "local", ProxyCABundle: "UEVN",
		ResourceRequirements: []any{
			map[string]any{ContainerIDRegex: "^[^:]+:(?:.+):(?:.+)$", Resources: map[string]any{}},
			map[string]any{
				ContainerIDRegex: "^deployments:(?:hello):(?:(?:a|b))$",
				Resources:        map[string]any{"limits": map[string]any{"memory": "64Mi"}},
			},
		},
	}, got)
	namespace, err := configs.InstallNamespace(t.Context(), i)
	require.NoError(t, err)
	require.Equal(t, "first", namespace)
}

func TestWithoutAConfigurationEveryNameIsThere(t *testing.T) {
	i, configs := configured(t)
	got, err := configs.Values(t.Context(), i)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		NodeSelector: map[string]any{}, Tolerations: []any{}, HTTPProxy: "", HTTPSProxy: "", NoProxy: "", ProxyCABundle: "", ResourceRequirements: []any{},
	}, got)
	namespace, err := configs.InstallNamespace(t.Context(), i)
	require.NoError(t, err)
	require.Empty(t, namespace)
}

func TestTheNamespaceOfAConfiguration(t *testing.T) {
	for name, tc := range map[string]struct {
		says *string
		want string
	}{
		"one":                      {pointer("here"), "here"},
		"none, as the API sets it": {nil, addonv1alpha1.DefaultInstallNamespace},
		"it is left alone":         {pointer(""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			i, configs := configured(t, addonv1alpha1.AddOnDeploymentConfigSpec{AgentInstallNamespace: tc.says})
			got, err := configs.InstallNamespace(t.Context(), i)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestConfigurationsThatCannotBeRead(t *testing.T) {
	i, configs := configured(t, addonv1alpha1.AddOnDeploymentConfigSpec{})
	i.AddOn.Status.ConfigReferences[1].DesiredConfig.SpecHash = ""
	for _, ask := range []Func{configs.Values, configs.Image("Image", "a")} {
		_, err := ask(t.Context(), i)
		require.EqualError(t, err, "AddOnDeploymentConfig default/a: the hub has not found it; create it, or name another one")
	}
	_, err := configs.InstallNamespace(t.Context(), i)
	require.ErrorContains(t, err, "the hub has not found it")

	i.AddOn.Status.ConfigReferences[1].DesiredConfig = &addonv1alpha1.ConfigSpecHash{
		ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "default", Name: "gone"},
		SpecHash:       "1",
	}
	i.Of.Spec.SupportedConfigs[0].DefaultConfig.Name = "gone"
	_, err = configs.Values(t.Context(), i)
	require.ErrorContains(t, err, "reading AddOnDeploymentConfig default/gone")
}

func TestContainersOfRequirements(t *testing.T) {
	for id, want := range map[string]string{
		"deployments:a:b":      "^deployments:(?:a):(?:b)$",
		"*:(?:a|b):c":          "^[^:]+:(?:(?:a|b)):(?:c)$",
		"*:*:b":                "^[^:]+:(?:.*):(?:b)$",
		"*:*:*":                "^[^:]+:(?:.*):(?:.*)$",
		"jobs:a|b:c":           "^jobs:(?:a|b):(?:c)$",
		"deployments:(:)":      "",
		"deployments":          "",
		":a:b":                 "",
		"deployments:a:":       "",
		"deployments:[a-z:b]:": "",
	} {
		t.Run(id, func(t *testing.T) {
			got, err := FromSpec(addonv1alpha1.AddOnDeploymentConfigSpec{ResourceRequirements: []addonv1alpha1.ContainerResourceRequirements{{ContainerID: id}}})
			if want == "" {
				require.ErrorContains(t, err, "spec.resourceRequirements[0].containerID: ")
				return
			}
			require.NoError(t, err)
			require.Equal(t, want, got[ResourceRequirements].([]any)[0].(map[string]any)[ContainerIDRegex])
		})
	}
}

func TestWhereAnImageComesFrom(t *testing.T) {
	registry := func(source, mirror string) addonv1alpha1.AddOnDeploymentConfigSpec {
		return addonv1alpha1.AddOnDeploymentConfigSpec{Registries: []addonv1alpha1.ImageMirror{{Source: source, Mirror: mirror}}}
	}
	for name, tc := range map[string]struct {
		specs      []addonv1alpha1.AddOnDeploymentConfigSpec
		annotation string
		want       string
	}{
		"from where it says": {want: "quay.io/a/web:v1"},
		"the annotation of the cluster": {
			annotation: `{"registries":[{"source":"quay.io/a","mirror":"local/b"}]}`,
			want:       "local/b/web:v1",
		},
		"a configuration before it": {
			specs:      []addonv1alpha1.AddOnDeploymentConfigSpec{registry("quay.io", "mine")},
			annotation: `{"registries":[{"mirror":"local"}]}`,
			want:       "mine/a/web:v1",
		},
		"the first configuration most": {
			specs: []addonv1alpha1.AddOnDeploymentConfigSpec{registry("quay.io/a", "one/"), registry("quay.io/a", "two")},
			want:  "one/web:v1",
		},
		"the second where it does not": {
			specs: []addonv1alpha1.AddOnDeploymentConfigSpec{registry("docker.io", "one"), registry("quay.io/a", "two")},
			want:  "two/web:v1",
		},
		"any registry": {
			specs: []addonv1alpha1.AddOnDeploymentConfigSpec{registry("", "one")},
			want:  "one/web:v1",
		},
		"parts of a name count as whole": {
			specs: []addonv1alpha1.AddOnDeploymentConfigSpec{registry("quay.io/a/we", "one")},
			want:  "quay.io/a/web:v1",
		},
		"an image as a whole": {
			specs: []addonv1alpha1.AddOnDeploymentConfigSpec{registry("quay.io/a/web:v1", "one/web:v2")},
			want:  "one/web:v2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			i, configs := configured(t, tc.specs...)
			i.Cluster.Annotations = map[string]string{clusterv1.AnnotationImageRegistries: tc.annotation}
			got, err := configs.Image("global.image", "quay.io/a/web:v1")(t.Context(), i)
			require.NoError(t, err)
			require.Equal(t, map[string]any{"global": map[string]any{"image": tc.want}}, got)
		})
	}
	i, configs := configured(t)
	i.Cluster.Annotations = map[string]string{clusterv1.AnnotationImageRegistries: "quay.io"}
	_, err := configs.Image("Image", "a")(t.Context(), i)
	require.ErrorContains(
		t, err,
		"ManagedCluster c1: metadata.annotations[open-cluster-management.io/image-registries]: is not a JSON object with registries; use for example {",
	)
}

func TestEachContentIsReadOnce(t *testing.T) {
	i, configs := configured(t, addonv1alpha1.AddOnDeploymentConfigSpec{CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "Level", Value: "1"}}})
	client := configs.client.(*fake.FakeDynamicClient)
	level := func(hash string) string {
		i.AddOn.Status.ConfigReferences[1].DesiredConfig.SpecHash = hash
		got, err := configs.Values(t.Context(), i)
		require.NoError(t, err)
		return got["Level"].(string)
	}
	u, err := client.Resource(deploymentConfigs).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	first, err := addonkit.SpecHash(u.Object)
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": "Level", "value": "2"}}, "spec", "customizedVariables"))
	second, err := addonkit.SpecHash(u.Object)
	require.NoError(t, err)

	client.ClearActions()
	require.Equal(t, []string{"1", "1"}, []string{level(first), level(first)})
	require.Len(t, client.Actions(), 1)

	_, err = client.Resource(deploymentConfigs).Namespace("default").Update(t.Context(), u, metav1.UpdateOptions{})
	require.NoError(t, err)
	client.ClearActions()
	require.Equal(t, "1", level(first), "the hub has not seen the new one")
	require.Empty(t, client.Actions())
	require.Equal(t, []string{"2", "2"}, []string{level("of another one"), level("of another one")}, "what has another hash is not kept")
	require.Len(t, client.Actions(), 2)
	require.Equal(t, []string{"2", "2"}, []string{level(second), level(second)})
	require.Len(t, client.Actions(), 3)
}

func TestNamesOfChartsAndNothingThatIsNotSaid(t *testing.T) {
	i, configs := configured(t, addonv1alpha1.AddOnDeploymentConfigSpec{
		CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "Level", Value: "1"}},
		NodePlacement:       &addonv1alpha1.NodePlacement{Tolerations: []corev1.Toleration{{Key: "a"}}},
		ProxyConfig:         addonv1alpha1.ProxyConfig{NoProxy: "local", CABundle: []byte("ca")},
		ResourceRequirements: []addonv1alpha1.ContainerResourceRequirements{{
			ContainerID: "deployments:hello:a",
			Resources:   corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		}},
	})
	got, err := configs.Global(t.Context(), i)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"Level":       "1",
		"tolerations": []any{map[string]any{"key": "a"}},
		"global": map[string]any{
			"proxyConfig": map[string]any{"NO_PROXY": "local", "PROXY_CA_BUNDLE": "Y2E="},
			"resourceRequirements": []any{map[string]any{
				"containerIDRegex": "^deployments:(?:hello):(?:a)$",
				"resources":        map[string]any{"limits": map[string]any{"memory": "64Mi"}},
			}},
		},
	}, got)
	i, configs = configured(t)
	got, err = configs.Global(t.Context(), i)
	require.NoError(t, err)
	require.Empty(t, got)
	i, configs = configured(t, addonv1alpha1.AddOnDeploymentConfigSpec{})
	got, err = configs.Global(t.Context(), i)
	require.NoError(t, err)
	require.Empty(t, got, "what is silent says nothing")
}

// TestAnAgentReadsNothingByWhatItWritesIntoItsStatus: the agent of a cluster may write
// the status of its instance, and names a configuration of others there.
func TestAnAgentReadsNothingByWhatItWritesIntoItsStatus(t *testing.T) {
	mine := addonv1alpha1.AddOnConfig{ConfigGroupResource: Kind, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "default", Name: "a"}}
	at := &addonv1alpha1.ConfigSpecHash{ConfigReferent: mine.ConfigReferent, SpecHash: "1"}
	for name, tc := range map[string]struct {
		change func(*addonkit.Instance)
		read   bool
	}{
		"nobody gave it":        {func(i *addonkit.Instance) { i.Of = &addonv1alpha1.ClusterManagementAddOn{} }, false},
		"there is no add-on":    {func(i *addonkit.Instance) { i.Of = nil }, false},
		"the add-on went first": {func(i *addonkit.Instance) { i.Of, i.AddOn.DeletionTimestamp = nil, &metav1.Time{} }, true},
		"a default":             {func(*addonkit.Instance) {}, true},
		"the instance names it": {
			func(i *addonkit.Instance) { i.Of, i.AddOn.Spec.Configs = nil, []addonv1alpha1.AddOnConfig{mine} },
			true,
		},
		"a placement names it": {
			func(i *addonkit.Instance) {
				i.Of = &addonv1alpha1.ClusterManagementAddOn{}
				i.Of.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{Configs: []addonv1alpha1.AddOnConfig{mine}}}
			},
			true,
		},
		"a rollout of the next goes on": {func(i *addonkit.Instance) {
			i.Of = &addonv1alpha1.ClusterManagementAddOn{}
			i.Of.Status.InstallProgressions = []addonv1alpha1.InstallProgression{
				{ConfigReferences: []addonv1alpha1.InstallConfigReference{{ConfigGroupResource: Kind, LastAppliedConfig: at}}},
			}
		}, true},
		"the add-on has another kind so": {
			func(i *addonkit.Instance) { i.Of.Spec.SupportedConfigs[0].Resource = "other" },
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			i, configs := configured(t, addonv1alpha1.AddOnDeploymentConfigSpec{CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "Password", Value: "x"}}})
			tc.change(&i)
			got, err := configs.Values(t.Context(), i)
			if tc.read {
				require.NoError(t, err)
				require.Equal(t, "x", got["Password"])
				return
			}
			require.ErrorContains(t, err, "AddOnDeploymentConfig default/a: neither ClusterManagementAddOn")
			require.Empty(t, got)
		})
	}
}
