// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const (
	hubBundle   = root + "/config/olm/cluster-manager"
	agentBundle = root + "/config/olm/klusterlet"
)

// validators are those of the Operator Lifecycle Manager and of OperatorHub.
var validators = append(slices.Clone(validation.DefaultBundleValidators),
	validation.OperatorHubV2Validator, validation.StandardCategoriesValidator, validation.StandardCapabilitiesValidator,
	validation.ObjectValidator, validation.GoodPracticesValidator,
)

// expected are warnings that do not apply: the first is about versions of events and endpoints that
// no program of ours uses, the second about the definitions that hub and agent bring themselves.
var expected = regexp.MustCompile(`Migrate the API\(s\) for ((endpointslices|events): \([^)]*\),?)+$|CSV contains permissions to create CRD`)

// faults returns the errors and warnings of a bundle.
func faults(folder string) (out []string) {
	bundle, err := manifests.GetBundleFromDir(folder)
	if err != nil {
		return []string{err.Error()}
	}
	results := validators.Validate(bundle, bundle.CSV)
	for _, definition := range bundle.V1CRDs {
		results = append(results, validators.Validate(definition)...)
	}
	for _, result := range results {
		for _, fault := range append(result.Errors, result.Warnings...) {
			if !expected.MatchString(fault.Error()) {
				out = append(out, fault.Error())
			}
		}
	}
	return out
}

func TestTheBundlesAreValid(t *testing.T) {
	for folder, name := range map[string]string{hubBundle: "cluster-manager", agentBundle: "klusterlet"} {
		require.Empty(t, faults(folder), folder)
		bundle, err := manifests.GetBundleFromDir(folder)
		require.NoError(t, err)
		require.Equal(t, strings.TrimPrefix(version(t), "v"), bundle.CSV.Spec.Version.String())
		require.Equal(t, name+"."+version(t), bundle.CSV.Name)
		modes := map[string]bool{}
		for _, mode := range bundle.CSV.Spec.InstallModes {
			modes[string(mode.Type)] = mode.Supported
		}
		require.Equal(t, map[string]bool{"OwnNamespace": true, "SingleNamespace": true, "MultiNamespace": false, "AllNamespaces": true}, modes)
		metadata, err := os.ReadFile(filepath.Join(folder, "metadata", "annotations.yaml"))
		require.NoError(t, err)
		const prefix = "operators.operatorframework.io.bundle."
		annotations := map[string]any{
			prefix + "mediatype.v1": "registry+v1", prefix + "manifests.v1": "manifests/", prefix + "metadata.v1": "metadata/",
			prefix + "package.v1": name, prefix + "channels.v1": "stable", prefix + "channel.default.v1": "stable",
		}
		require.Equal(t, map[string]any{"annotations": annotations}, values(t, string(metadata)))
		dockerfile, err := os.ReadFile(filepath.Join(folder, "bundle.Dockerfile"))
		require.NoError(t, err)
		for key, value := range annotations {
			require.Contains(t, string(dockerfile), fmt.Sprintf("\nLABEL %s=%s\n", key, value))
		}
		for _, image := range bundle.CSV.Spec.RelatedImages {
			container := bundle.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
			require.Equal(t, container.Image, image.Image)
		}
	}
}

// TestABrokenBundleIsNotValid breaks one field of the hub's bundle at a time.
func TestABrokenBundleIsNotValid(t *testing.T) {
	const version = "manifests/cluster-manager.clusterserviceversion.yaml"
	for name, tc := range map[string]struct{ old, replacement string }{
		"the version is none":                    {"\n  version: 0.1.0", "\n  version: one"},
		"the name has no version":                {"name: cluster-manager.v0.1.0", "name: cluster-manager_x"},
		"the oldest Kubernetes is no version":    {"minKubeVersion: 1.28.0", "minKubeVersion: x"},
		"no install mode":                        {"supported: true", "supported: false"},
		"the kind is not that of the definition": {"\n      kind: ClusterManager\n", "\n      kind: Other\n"},
		"the example is not JSON":                {`"kind": "ClusterManager",`, `"kind" "ClusterManager",`},
		"the category does not exist":            {"categories: Integration & Delivery", "categories: Things"},
		"the capability does not exist":          {"capabilities: Basic Install", "capabilities: All"},
		"the media type of the icon":             {"mediatype: image/svg+xml", "mediatype: text/plain"},
		"the address of the source":              {"name: Source\n    url: https://github.com", "name: Source\n    url: github"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			require.NoError(t, os.CopyFS(folder, os.DirFS(hubBundle)))
			path := filepath.Join(folder, version)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Contains(t, string(text), tc.old)
			require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), tc.old, tc.replacement)), 0o600))
			require.NotEmpty(t, faults(folder))
		})
	}
}

// rights returns what each subject may do, one right a line, whatever the names of roles are.
func rights(t *testing.T, objects map[string]any) []string {
	t.Helper()
	var out []string
	for name, o := range objects {
		kind, _, _ := strings.Cut(name, " ")
		if !strings.HasSuffix(kind, "RoleBinding") {
			continue
		}
		binding, err := typed.FromUnstructured[rbacv1.RoleBinding](&unstructured.Unstructured{Object: o.(map[string]any)})
		require.NoError(t, err)
		of := binding.Namespace
		if binding.RoleRef.Kind == "ClusterRole" {
			of = ""
		}
		role, found := objects[binding.RoleRef.Kind+" "+of+"/"+binding.RoleRef.Name].(map[string]any)
		for _, subject := range binding.Subjects {
			who := fmt.Sprintf("%s %s/%s in %q", subject.Kind, subject.Namespace, subject.Name, binding.Namespace)
			if !found || role["aggregationRule"] != nil {
				out = append(out, who+" "+binding.RoleRef.Name)
				continue
			}
			rules, err := typed.FromUnstructured[rbacv1.ClusterRole](&unstructured.Unstructured{Object: role})
			require.NoError(t, err)
			for _, rule := range rules.Rules {
				out = append(out, fmt.Sprintf("%s %v %v %v %v %v", who, rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs))
			}
		}
	}
	slices.Sort(out)
	return out
}

// others returns the objects without those whose names are the manager's, and the labels of
// the Deployment and of the account, which it does not set.
func others(objects map[string]any, account string) map[string]any {
	out := map[string]any{}
	for name, o := range objects {
		kind, _, _ := strings.Cut(name, " ")
		if strings.HasSuffix(kind, "Role") || strings.HasSuffix(kind, "RoleBinding") {
			continue
		}
		if kind == "Deployment" || name == "ServiceAccount "+account {
			u := (&unstructured.Unstructured{Object: o.(map[string]any)}).DeepCopy()
			u.SetAnnotations(nil)
			if kind == "ServiceAccount" {
				u.SetLabels(nil)
			}
			o = u.Object
		}
		out[name] = o
	}
	return out
}

// TestTheBundlesInstallWhatThePluginApplies compares every object and every right. What the
// manager does not create is listed here, and in docs/guides/install.md.
func TestTheBundlesInstallWhatThePluginApplies(t *testing.T) {
	hubs, err := hub.Objects(hub.Options{Version: version(t)})
	require.NoError(t, err)
	agents, err := agent.Objects(agent.Options{Image: "ghcr.io/kubectl-ocm/ocm-agent:" + version(t), ClusterName: "cluster1"})
	require.NoError(t, err)
	for folder, tc := range map[string]struct {
		objects            []*unstructured.Unstructured
		namespace, account string
		// missing are created by the process, or by the person who installs.
		missing []string
	}{
		hubBundle: {hubs, hub.Namespace, hub.Namespace + "/" + hub.Name, []string{
			"ClusterManager /cluster-manager",
			"Namespace /open-cluster-management",
			"Namespace /open-cluster-management-hub",
			"NetworkPolicy open-cluster-management/cluster-manager",
			"RoleBinding open-cluster-management-hub/cluster-manager-components",
			"Service open-cluster-management-hub/cluster-manager-placement",
			"ServiceAccount open-cluster-management-hub/addon-manager-controller-sa",
		}},
		agentBundle: {agents, operatorv1.NamespaceAgent, operatorv1.NamespaceAgent + "/klusterlet-work-sa", []string{
			"Klusterlet /klusterlet",
			"Namespace /open-cluster-management-agent",
			"Namespace /open-cluster-management-agent-addon",
		}},
	} {
		want := named(t, tc.objects)
		for _, name := range tc.missing {
			require.Contains(t, want, name)
			delete(want, name)
		}
		objects, err := Bundle(folder, tc.namespace)
		require.NoError(t, err)
		got := named(t, objects)
		require.Empty(t, cmp.Diff(rights(t, want), rights(t, got)), folder)
		require.Empty(t, cmp.Diff(others(want, tc.account), others(got, tc.account)), folder)
	}
}
