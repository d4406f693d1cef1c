// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

const (
	root     = "../.."
	hubChart = root + "/config/helm/cluster-manager"
	chart    = root + "/config/helm/klusterlet"
	// namespace is that of both releases.
	namespace = "open-cluster-management"
)

// version returns the release of this tree.
func version(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "VERSION"))
	require.NoError(t, err)
	return strings.TrimSpace(string(text))
}

// values reads values as in a file of "helm install -f".
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &out))
	return out
}

// named returns the objects by name, in the form that is sent to an API server.
func named(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, o := range objects {
		name := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		require.NotContains(t, out, name, "it is there twice")
		text, err := json.Marshal(o.Object)
		require.NoError(t, err)
		var plain map[string]any
		require.NoError(t, json.Unmarshal(text, &plain))
		delete(plain, "status") // which no installer writes
		out[name] = plain
	}
	return out
}

// unannotate removes an annotation, and the field with the last.
func unannotate(o *unstructured.Unstructured, key string) {
	annotations := o.GetAnnotations()
	delete(annotations, key)
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
}

// rendered returns the objects of a chart by name, and those that Helm would delete. It
// takes off what only Helm reads.
func rendered(t *testing.T, folder, text string) (objects map[string]any, deleted []string) {
	t.Helper()
	release, err := Render(folder, namespace, values(t, text))
	require.NoError(t, err)
	for _, o := range release.Objects {
		if !Kept(o) {
			deleted = append(deleted, o.GetKind()+" "+o.GetName())
		}
		unannotate(o, "helm.sh/resource-policy")
	}
	return named(t, append(release.Definitions, release.Objects...)), deleted
}

// installed returns the objects of an installer as a chart has them: a definition has no
// version, because Helm does not render it.
func installed(t *testing.T, objects []*unstructured.Unstructured, err error) map[string]any {
	t.Helper()
	require.NoError(t, err)
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			unannotate(o, operatorv1.AnnotationVersion)
		}
	}
	return named(t, objects)
}

func TestTheHubsChartHasWhatThePluginApplies(t *testing.T) {
	for name, tc := range map[string]struct {
		values  string
		options hub.Options
		change  func(want map[string]any)
	}{
		"as it is": {},
		"with options of the plugin": {
			values:  "{replicaCount: 3, addOnRights: narrow, images: {imagePullPolicy: Always, overrides: {operatorImage: example.com/hub:1}}}",
			options: hub.Options{Replicas: 3, NarrowAddOnRights: true, ImagePullPolicy: "Always", Image: "example.com/hub:1"},
		},
		"in the split layout": {values: "{layout: split}", options: hub.Options{Layout: hub.LayoutSplit}},
		"of another registry": {
			values:  "{images: {registry: example.com/ocm/, tag: v9}}",
			options: hub.Options{Image: "example.com/ocm/ocm-hub:v9"},
		},
		"that imports clusters of Cluster API": {
			values:  "{clusterManager: {registrationConfiguration: {featureGates: [{feature: ClusterImporter, mode: Enable}]}}}",
			options: hub.Options{Importer: true},
			change: func(want map[string]any) {
				spec := want["ClusterManager /cluster-manager"].(map[string]any)["spec"].(map[string]any)
				spec["registrationConfiguration"] = map[string]any{"featureGates": []any{map[string]any{"feature": "ClusterImporter", "mode": "Enable"}}}
			},
		},
		"with the gates that copy tokens beside ClusterProfiles": {
			values: "{clusterManager: {registrationConfiguration: {featureGates: [{feature: ClusterProfile, mode: Enable}]}, " +
				"addOnManagerConfiguration: {featureGates: [{feature: ManagedServiceAccount, mode: Enable}]}}}",
			options: hub.Options{Credentials: true},
			change: func(want map[string]any) {
				spec := want["ClusterManager /cluster-manager"].(map[string]any)["spec"].(map[string]any)
				for part, gate := range map[string]string{"registrationConfiguration": "ClusterProfile", "addOnManagerConfiguration": "ManagedServiceAccount"} {
					spec[part] = map[string]any{"featureGates": []any{map[string]any{"feature": gate, "mode": "Enable"}}}
				}
			},
		},
		"with one of these gates": {
			values: "{clusterManager: {registrationConfiguration: {featureGates: [{feature: ClusterProfile, mode: Enable}]}, " +
				"addOnManagerConfiguration: {featureGates: [{feature: ManagedServiceAccount, mode: Disable}]}}}",
			change: func(want map[string]any) {
				spec := want["ClusterManager /cluster-manager"].(map[string]any)["spec"].(map[string]any)
				spec["registrationConfiguration"] = map[string]any{"featureGates": []any{map[string]any{"feature": "ClusterProfile", "mode": "Enable"}}}
				spec["addOnManagerConfiguration"] = map[string]any{"featureGates": []any{map[string]any{"feature": "ManagedServiceAccount", "mode": "Disable"}}}
			},
		},
		"with null, which Helm takes for no value": {
			values: "{nodeSelector: null, clusterManager: {registrationConfiguration: null, workConfiguration: null}}",
		},
		"without a ClusterManager": {
			values: "{clusterManager: {create: false}}",
			change: func(want map[string]any) { delete(want, "ClusterManager /cluster-manager") },
		},
		"without the bootstrap account": {
			values: "{createBootstrapSA: false}",
			change: func(want map[string]any) {
				maps.DeleteFunc(want, func(name string, _ any) bool { return strings.Contains(name, "bootstrap") })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := tc.options
			o.Version = version(t)
			if o.ImagePullPolicy == "" {
				o.ImagePullPolicy = "IfNotPresent"
			}
			objects, err := hub.Objects(o)
			want := installed(t, objects, err)
			delete(want, "Namespace /"+namespace) // that of the release
			if tc.change != nil {
				tc.change(want)
			}
			got, deleted := rendered(t, hubChart, tc.values)
			require.Empty(t, cmp.Diff(want, got))
			if _, ok := want["ClusterManager /cluster-manager"]; ok {
				require.Equal(t, []string{"ClusterManager cluster-manager"}, deleted)
			}
		})
	}
}

func TestTheAgentsChartHasWhatThePluginApplies(t *testing.T) {
	seconds := "{clientCertExpirationSeconds: 3600}"
	const tunnel = "klusterlet: {registrationConfiguration: {featureGates: [{feature: ClusterProxy, mode: Enable}]}}"
	leads := operatorv1.KlusterletSpec{RegistrationConfiguration: &operatorv1.RegistrationConfiguration{
		FeatureGates: []operatorv1.FeatureGate{{Feature: "ClusterProxy", Mode: operatorv1.FeatureGateModeTypeEnable}},
	}}
	var ofTunnel []string
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
		ofTunnel = append(ofTunnel, kind+" kubectl-ocm:klusterlet-registration:proxy")
	}
	for name, tc := range map[string]struct {
		values  string
		options agent.Options
		// more is what Helm deletes besides the Klusterlet.
		more []string
	}{
		"as it is": {},
		"with null, which Helm takes for no value": {
			values: "{resources: null, klusterlet: {registrationConfiguration: null, nodePlacement: null}}",
		},
		"of another registry": {
			values:  "{images: {registry: example.com/ocm/, tag: v9}}",
			options: agent.Options{Image: "example.com/ocm/ocm-agent:v9"},
		},
		"with a bootstrap kubeconfig": {
			values:  "{bootstrapHubKubeConfig: \"a: b\\n\", klusterlet: {clusterName: c1}}",
			options: agent.Options{ClusterName: "c1", BootstrapKubeconfig: []byte("a: b\n")},
		},
		"with narrow rights in another namespace": {
			values:  "{agentRights: narrow, klusterlet: {namespace: open-cluster-management-second}, images: {overrides: {operatorImage: i}}}",
			options: agent.Options{Image: "i", NarrowRights: true, Namespace: "open-cluster-management-second"},
		},
		"with a tunnel": {values: "{" + tunnel + "}", options: agent.Options{Spec: leads}, more: ofTunnel},
		"with a tunnel and narrow rights": {
			values: "{agentRights: narrow, " + tunnel + "}", options: agent.Options{NarrowRights: true, Spec: leads}, more: ofTunnel,
		},
		"with settings of the Klusterlet": {
			values: "{priorityClassName: high, images: {imagePullPolicy: Never}, klusterlet: {externalServerURLs: [{url: 'https://a', caBundle: YQ==}], " +
				"nodePlacement: {nodeSelector: {role: infra}, tolerations: [{key: infra, operator: Exists}]}, registrationConfiguration: " + seconds + "}}",
			options: agent.Options{ImagePullPolicy: corev1.PullNever, Spec: operatorv1.KlusterletSpec{
				PriorityClassName:  "high",
				ExternalServerURLs: []operatorv1.ServerURL{{URL: "https://a", CABundle: []byte("a")}},
				NodePlacement: operatorv1.NodePlacement{
					NodeSelector: map[string]string{"role": "infra"},
					Tolerations:  []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}},
				},
				RegistrationConfiguration: &operatorv1.RegistrationConfiguration{ClientCertExpirationSeconds: 3600},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := tc.options
			if o.Image == "" {
				o.Image = "ghcr.io/kubectl-ocm/ocm-agent:" + version(t)
			}
			if o.ClusterName == "" {
				o.ClusterName = "cluster1"
			}
			objects, err := agent.Objects(o)
			want := installed(t, objects, err)
			got, deleted := rendered(t, chart, tc.values)
			require.Empty(t, cmp.Diff(want, got))
			require.ElementsMatch(t, append([]string{"Klusterlet klusterlet"}, tc.more...), deleted)
		})
	}
}

// TestValuesReachThePod sets what the plugin has no option for.
func TestValuesReachThePod(t *testing.T) {
	common := `
resources: {limits: {memory: 1Gi}}
podSecurityContext: {fsGroup: 1}
securityContext: {runAsUser: 1}
affinity: {nodeAffinity: {}}
images: {imagePullSecrets: [{name: pull}]}
`
	for folder, more := range map[string]string{
		hubChart: "enableSyncLabels: true\nskipRemoveCRDs: true\nnodeSelector: {a: b}\ntolerations: [{operator: Exists}]\n",
		chart:    "klusterlet: {nodePlacement: {nodeSelector: {a: b}, tolerations: [{operator: Exists}]}}\n",
	} {
		release, err := Render(folder, namespace, values(t, common+more))
		require.NoError(t, err)
		i := slices.IndexFunc(release.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
		pod, _, err := unstructured.NestedMap(release.Objects[i].Object, "spec", "template", "spec")
		require.NoError(t, err)
		container := pod["containers"].([]any)[0].(map[string]any)
		require.Equal(t, values(t, "{limits: {memory: 1Gi}}"), container["resources"])
		require.Equal(t, values(t, "{runAsUser: 1}"), container["securityContext"])
		require.Equal(t, values(t, "{fsGroup: 1}"), pod["securityContext"])
		require.Equal(t, values(t, "{nodeAffinity: {}}"), pod["affinity"])
		require.Equal(t, []any{map[string]any{"name": "pull"}}, pod["imagePullSecrets"])
		require.Equal(t, map[string]any{"a": "b"}, pod["nodeSelector"])
		require.Equal(t, []any{map[string]any{"operator": "Exists"}}, pod["tolerations"])
		if folder == hubChart {
			require.Equal(t, []any{"run", "--enable-sync-labels", "--skip-remove-crds"}, container["args"])
		}
	}
	got, _ := rendered(t, hubChart, common+"layout: split\n")
	operator := got["Deployment "+namespace+"/cluster-manager"].(map[string]any)
	containers, _, err := unstructured.NestedSlice(operator, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.Equal(t, []any{"operator", "--image-pull-secret-name=pull"}, containers[0].(map[string]any)["args"])
}

func TestConfigurationsReachTheCustomResources(t *testing.T) {
	got, _ := rendered(t, hubChart, `clusterManager:
  registrationConfiguration: {autoApproveUsers: [me], registrationDrivers: [{authType: csr}]}
  workConfiguration: {workDriver: kube}
`)
	require.Equal(t, map[string]any{
		"deployOption":              map[string]any{"mode": "Default"},
		"registrationConfiguration": values(t, "{autoApproveUsers: [me], registrationDrivers: [{authType: csr}]}"),
		"workConfiguration":         map[string]any{"workDriver": "kube"},
	}, got["ClusterManager /cluster-manager"].(map[string]any)["spec"])

	got, _ = rendered(t, chart, "{klusterlet: {mode: Default}, multiHubBootstrapHubKubeConfigs: [{name: hub2, kubeConfig: text}]}")
	secret := got["Secret open-cluster-management-agent/hub2"].(map[string]any)
	require.Equal(t, map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString([]byte("text"))}, secret["data"])
	require.Equal(t, map[string]any{"mode": "Default"}, got["Klusterlet /klusterlet"].(map[string]any)["spec"].(map[string]any)["deployOption"])
}

func TestUnsupportedValuesAreRefused(t *testing.T) {
	const onePart = " is not supported: one process runs every part: set "
	hubs := map[string]string{
		"{createBootstrapToken: true}":                                 "createBootstrapToken is not supported: its token would change",
		"{images: {imageCredentials: {createImageCredentials: true}}}": "images.imageCredentials.createImageCredentials is not",
		"{images: {overrides: {registrationImage: a}}}":                "images.overrides.registrationImage" + onePart + "images.overrides.op",
		"{images: {overrides: {workImage: a}}}":                        "images.overrides.workImage" + onePart,
		"{images: {overrides: {placementImage: a}}}":                   "images.overrides.placementImage" + onePart,
		"{images: {overrides: {addOnManagerImage: a}}}":                "images.overrides.addOnManagerImage" + onePart,
		"{clusterManager: {resourceRequirement: {type: BestEffort}}}":  "clusterManager.resourceRequirement" + onePart + "resources",
		"{clusterManager: {serverConfiguration: {imagePullSpec: a}}}":  "clusterManager.serverConfiguration is not supported",
		"{clusterManager: {mode: Hosted}}":                             "at '/clusterManager/mode': value must be 'Default'",
		"{clusterManager: {workConfiguration: {workDriver: mqtt}}}":    "workConfiguration.workDriver: mqtt is not supported: use kube",
		"{replicaCount: 0}":                                            "at '/replicaCount': minimum",
		"{replicas: 1}":                                                "additional properties 'replicas' not allowed",
		"{addOnRights: narrower}":                                      "at '/addOnRights'",

		"{clusterManager: {registrationConfiguration: {registrationDrivers: [{authType: grpc}]}}}": "registrationDrivers: grpc is not supported: use csr",
	}
	agents := map[string]string{
		"{enableSyncLabels: true}":                                     "enableSyncLabels is not supported",
		"{externalManagedKubeConfig: a}":                               "externalManagedKubeConfig is not supported: hosted modes",
		"{extraVolumes: [{name: a}]}":                                  "extraVolumes is not supported",
		"{extraVolumeMounts: [{name: a}]}":                             "extraVolumeMounts is not supported",
		"{grpcConfig: a}":                                              "grpcConfig is not supported",
		"{images: {imageCredentials: {createImageCredentials: true}}}": "images.imageCredentials.createImageCredentials is not",
		"{images: {overrides: {registrationImage: a}}}":                "images.overrides.registrationImage" + onePart,
		"{images: {overrides: {workImage: a}}}":                        "images.overrides.workImage" + onePart,
		"{klusterlet: {resourceRequirement: {type: BestEffort}}}":      "klusterlet.resourceRequirement" + onePart,
		"{noOperator: true}":                                           "noOperator is not supported: one process is operator and agent",
		"{nodeSelector: {a: b}}":                                       "nodeSelector is not supported: the agent's pod is placed by klusterlet.nodePlacement",
		"{tolerations: [{operator: Exists}]}":                          "tolerations is not supported",
		"{klusterlet: {mode: Hosted}}":                                 "at '/klusterlet/mode'",
		"{klusterlet: {name: other}}":                                  "at '/klusterlet/name': value must be 'klusterlet'",
		"{klusterlet: {clusterName: Bad_Name}}":                        "at '/klusterlet/clusterName': 'Bad_Name' does not match pattern",
		"{klusterlet: {namespace: other}}":                             "at '/klusterlet/namespace'",
		"{replicaCount: 2}":                                            "at '/replicaCount': value must be 1",
		"{bootstrapHubKubeconfig: a}":                                  "additional properties 'bootstrapHubKubeconfig' not allowed",

		"{klusterlet: {namespace: open-cluster-management-agent-addon}}":                       "at '/klusterlet/namespace'",
		"{klusterlet: {registrationConfiguration: {registrationDriver: {authType: awsirsa}}}}": "registrationDriver.authType: awsirsa is not supported: use csr",
	}
	for folder, cases := range map[string]map[string]string{hubChart: hubs, chart: agents} {
		for text, want := range cases {
			_, err := Render(folder, namespace, values(t, text))
			require.ErrorContains(t, err, want, text)
		}
	}
	_, err := Render(hubChart, "default", nil)
	require.ErrorContains(t, err, "install with --namespace open-cluster-management --create-namespace")
	_, err = Render(chart, "open-cluster-management-agent", nil)
	require.ErrorContains(t, err, "klusterlet.namespace: the agent deletes open-cluster-management-agent when it leaves")
}

// TestEveryValueIsDocumented compares the table of each README with the values that the chart
// has, and with those that it refuses.
func TestEveryValueIsDocumented(t *testing.T) {
	for _, folder := range []string{hubChart, chart} {
		readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
		require.NoError(t, err)
		var want []string
		text, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
		require.NoError(t, err)
		want = leaves("", values(t, string(text)))
		check, err := os.ReadFile(filepath.Join(folder, "templates", "_check.tpl"))
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^  "([A-Za-z.]+)" `).FindAllStringSubmatch(string(check), -1) {
			want = append(want, m[1])
		}
		require.Greater(t, len(want), 20)
		var got []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\|").FindAllStringSubmatch(string(readme), -1) {
			got = append(got, m[1])
		}
		slices.Sort(want)
		slices.Sort(got)
		require.Empty(t, cmp.Diff(want, got), "README.md of %s", folder)
	}
}

// leaves returns the paths of the values that are not objects with values.
func leaves(prefix string, of map[string]any) []string {
	var out []string
	for name, value := range of {
		if below, ok := value.(map[string]any); ok && len(below) > 0 {
			out = append(out, leaves(prefix+name+".", below)...)
			continue
		}
		out = append(out, prefix+name)
	}
	return out
}
