// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const image = "ghcr.io/kubectl-ocm/helloworld-addon:v1"

// rendered are the manifests of cluster1, by kind and name, and the namespace of the
// agent; with a configuration unless it is nil.
func rendered(t *testing.T, addOn *addonv1alpha1.ManagedClusterAddOn, config *addonv1alpha1.AddOnDeploymentConfigSpec) map[string]*unstructured.Unstructured {
	t.Helper()
	var objects []runtime.Object
	addOn.Namespace, addOn.Name = "cluster1", name
	if config != nil {
		u, err := typed.ToUnstructured(&addonv1alpha1.AddOnDeploymentConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "AddOnDeploymentConfig"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "config"}, Spec: *config,
		})
		require.NoError(t, err)
		objects = append(objects, u)
		addOn.Spec.Configs = []addonv1alpha1.AddOnConfig{
			{ConfigGroupResource: values.Kind, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "default", Name: "config"}},
		}
		addOn.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{ConfigGroupResource: values.Kind, DesiredConfig: &addonv1alpha1.ConfigSpecHash{
			ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "default", Name: "config"}, SpecHash: "1",
		}}}
	}
	made, err := newAddOn(fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...), image)
	require.NoError(t, err)
	list, err := made.Manifests(t.Context(), addonkit.Instance{Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}}, AddOn: addOn})
	require.NoError(t, err)
	manifests, err := addonkit.Read(list)
	require.NoError(t, err)
	out := map[string]*unstructured.Unstructured{}
	for _, m := range manifests {
		out[m.Kind+" "+m.Name] = m.Object
	}
	return out
}

func TestWhatAClusterGets(t *testing.T) {
	got := rendered(t, &addonv1alpha1.ManagedClusterAddOn{}, nil)
	require.Len(t, got, 5)
	for kind, o := range got {
		require.Equal(t, addonv1alpha1.DefaultInstallNamespace, o.GetNamespace(), kind)
	}
	deployment, err := typed.FromUnstructured[appsv1.Deployment](got["Deployment helloworld-agent"])
	require.NoError(t, err)
	pod := deployment.Spec.Template.Spec
	require.Equal(t, image, pod.Containers[0].Image)
	require.Equal(t, []string{
		"agent", "--hub-kubeconfig=/etc/hub/kubeconfig", "--cluster-name=cluster1",
		"--addon-namespace=open-cluster-management-agent-addon", "--addon-name=helloworld", "--verbosity=0",
	}, pod.Containers[0].Args)
	require.Equal(t, "helloworld-hub-kubeconfig", pod.Volumes[0].Secret.SecretName)
	require.Equal(t, "64Mi", pod.Containers[0].Resources.Limits.Memory().String())

	raw, err := got["Job helloworld-cleanup"].MarshalJSON()
	require.NoError(t, err)
	hook, err := addonkit.Parse(raw)
	require.NoError(t, err)
	require.True(t, hook.Hook(), "the cleanup runs before the add-on is removed")
}

func TestConfigurationsChangeWhatAClusterGets(t *testing.T) {
	namespace := "elsewhere"
	got := rendered(t, &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{addonv1alpha1.AnnotationValues: `{"Verbosity":2}`}},
		Spec:       addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: "default"},
	}, &addonv1alpha1.AddOnDeploymentConfigSpec{
		AgentInstallNamespace: &namespace,
		NodePlacement: &addonv1alpha1.NodePlacement{
			NodeSelector: map[string]string{"os": "linux"},
			Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
		Registries:  []addonv1alpha1.ImageMirror{{Source: "ghcr.io/kubectl-ocm", Mirror: "registry.local"}},
		ProxyConfig: addonv1alpha1.ProxyConfig{HTTPSProxy: "http://proxy:3128", NoProxy: "10.0.0.0/8,local"},
		ResourceRequirements: []addonv1alpha1.ContainerResourceRequirements{{
			ContainerID: "*:helloworld-.*:.*", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}},
		}},
	})
	require.Equal(t, "true", got["Namespace elsewhere"].GetLabels()["addon.open-cluster-management.io/namespace"])
	deployment, err := typed.FromUnstructured[appsv1.Deployment](got["Deployment helloworld-agent"])
	require.NoError(t, err)
	job, err := typed.FromUnstructured[batchv1.Job](got["Job helloworld-cleanup"])
	require.NoError(t, err)
	require.Equal(t, []string{namespace, namespace}, []string{deployment.Namespace, job.Namespace})
	for _, pod := range []corev1.PodSpec{deployment.Spec.Template.Spec, job.Spec.Template.Spec} {
		require.Equal(t, map[string]string{"os": "linux"}, pod.NodeSelector)
		require.Len(t, pod.Tolerations, 1)
		require.Equal(t, "registry.local/helloworld-addon:v1", pod.Containers[0].Image)
		require.Equal(t, "32Mi", pod.Containers[0].Resources.Limits.Memory().String())
		require.Contains(t, pod.Containers[0].Args, "--addon-namespace=elsewhere")
	}
	agent := deployment.Spec.Template.Spec.Containers[0]
	require.Contains(t, agent.Args, "--verbosity=2")
	require.Contains(t, agent.Env, corev1.EnvVar{Name: "NO_PROXY", Value: "10.0.0.0/8,local"})

	inDefault := rendered(t, &addonv1alpha1.ManagedClusterAddOn{Spec: addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: "default"}}, nil)
	require.Len(t, inDefault, 5, "the namespace default is there")
	require.Equal(t, "default", inDefault["Role helloworld-agent"].GetNamespace())
}

// deployed are the objects of deploy.yaml, by kind.
func deployed(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("deploy.yaml")
	require.NoError(t, err)
	out := map[string][]byte{}
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal(part, &kind))
		require.NotContains(t, out, kind.Kind)
		out[kind.Kind] = part
	}
	return out
}

func TestTheHubGetsWhatTheProgramIs(t *testing.T) {
	objects := deployed(t)
	var addOn addonv1alpha1.ClusterManagementAddOn
	require.NoError(t, yaml.UnmarshalStrict(objects["ClusterManagementAddOn"], &addOn))
	made, err := newAddOn(fake.NewSimpleDynamicClient(runtime.NewScheme()), image)
	require.NoError(t, err)
	require.Equal(t, made.Options().Name, addOn.Name)
	require.Len(t, addOn.Spec.SupportedConfigs, 1)
	require.Equal(t, made.Options().Configs[0], addOn.Spec.SupportedConfigs[0].ConfigGroupResource)

	version, err := os.ReadFile("../../VERSION")
	require.NoError(t, err)
	want := "ghcr.io/kubectl-ocm/" + program + ":" + strings.TrimSpace(string(version))
	var deployment appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict(objects["Deployment"], &deployment))
	container := deployment.Spec.Template.Spec.Containers[0]
	require.Equal(t, want, container.Image)
	require.Equal(t, []string{"controller", "--agent-image=" + want}, container.Args)
}

// TestTheControllerMayGiveWhatItGives: the API server refuses to grant permissions that the granter lacks.
func TestTheControllerMayGiveWhatItGives(t *testing.T) {
	var role rbacv1.ClusterRole
	require.NoError(t, yaml.UnmarshalStrict(deployed(t)["ClusterRole"], &role))
	for _, r := range role.Rules {
		for _, words := range [][]string{r.APIGroups, r.Resources, r.Verbs} {
			require.NotContains(t, words, "*")
		}
		require.NotContains(t, r.Resources, "secrets")
	}
	permissions, err := helloworld{}.Permissions(t.Context(), addonkit.Instance{})
	require.NoError(t, err)
	for _, p := range permissions {
		for _, wanted := range p.Rules {
			require.True(t, slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
				return includes(r.APIGroups, wanted.APIGroups) && includes(r.Resources, wanted.Resources) && includes(r.Verbs, wanted.Verbs) && r.ResourceNames == nil
			}), "%v", wanted)
		}
	}
}

// includes reports whether all contains every item of some.
func includes(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// maxLines is what an author has to write for the hub, beside manifests, comments and
// imports.
const maxLines = 100

func TestTheControllerIsShort(t *testing.T) {
	source, err := os.ReadFile("controller.go")
	require.NoError(t, err)
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, "controller.go", source, parser.ImportsOnly)
	require.NoError(t, err)
	imports := files.Position(tree.Imports[len(tree.Imports)-1].End()).Line + 1
	var s scanner.Scanner
	file := token.NewFileSet()
	s.Init(file.AddFile("controller.go", 1, len(source)), source, nil, 0)
	lines := map[int]bool{}
	for {
		position, kind, _ := s.Scan()
		if kind == token.EOF {
			break
		}
		if at := file.Position(position).Line; at > imports {
			lines[at] = true
		}
	}
	require.NotEmpty(t, lines)
	require.LessOrEqual(t, len(lines), maxLines)
}
