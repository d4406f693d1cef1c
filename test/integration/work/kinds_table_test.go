// SPDX-License-Identifier: Apache-2.0

package work

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindCase is one entry in the table of kinds.
type kindCase struct {
	gvr schema.GroupVersionResource
	// manifest has the cluster-scoped name CLUSTER; from and to are a change of it, drift
	// is a change by another user, and at is the path of the field that shows both.
	manifest, from, to, drift string
	at                        []string
	cluster                   bool
	// stays is set for objects that are not removed without a namespace controller or a
	// kubelet, kept for those that the agent may not delete by default.
	stays, kept bool
}

func resource(group, version, plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
}

var kindCases = map[string]kindCase{
	"Namespace": {
		gvr:      resource("", "v1", "namespaces"),
		cluster:  true,
		at:       []string{"metadata", "labels", "a"},
		manifest: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"CLUSTER","labels":{"a":"1"}}}`,
		from:     `"a":"1"`,
		to:       `"a":"2"`,
		drift:    `{"metadata":{"labels":{"a":"x"}}}`,
		stays:    true,
	},
	"ServiceAccount": {
		gvr: serviceAccounts,
		at:  []string{"automountServiceAccountToken"},
		manifest: `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"k","namespace":"NS"},
			"automountServiceAccountToken":false}`,
		from:  `Token":false`,
		to:    `Token":true`,
		drift: `{"automountServiceAccountToken":null}`,
	},
	"ConfigMap": {
		gvr: configMaps,
		at:  []string{"binaryData", "b"},
		manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"k","namespace":"NS"},"data":{"a":"1"},
			"binaryData":{"b":"AQ=="}}`,
		from:  `AQ==`,
		to:    `Ag==`,
		drift: `{"binaryData":{"b":"eA=="}}`,
	},
	"Service": {
		gvr: resource("", "v1", "services"),
		at:  []string{"spec", "selector", "app"},
		manifest: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"k","namespace":"NS"},
			"spec":{"selector":{"app":"a"},"ports":[{"port":80}]}}`,
		from:  `"app":"a"`,
		to:    `"app":"b"`,
		drift: `{"spec":{"selector":{"app":"x"}}}`,
	},
	"NetworkPolicy": {
		gvr: resource("networking.k8s.io", "v1", "networkpolicies"),
		at:  []string{"spec", "podSelector", "matchLabels", "app"},
		manifest: `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"k","namespace":"NS"},
			"spec":{"podSelector":{"matchLabels":{"app":"a"}},"policyTypes":["Ingress"]}}`,
		from:  `"app":"a"`,
		to:    `"app":"b"`,
		drift: `{"spec":{"podSelector":{"matchLabels":{"app":"x"}}}}`,
	},
	"PodDisruptionBudget": {
		gvr: resource("policy", "v1", "poddisruptionbudgets"),
		at:  []string{"spec", "minAvailable"},
		manifest: `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"k","namespace":"NS"},
			"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"a"}}}}`,
		from:  `Available":1`,
		to:    `Available":2`,
		drift: `{"spec":{"minAvailable":9}}`,
	},
	"Role": {
		gvr:      resource("rbac.authorization.k8s.io", "v1", "roles"),
		at:       []string{"rules"},
		manifest: role,
		from:     `"get"`,
		to:       `"list"`,
		drift:    `{"rules":[]}`,
	},
	"RoleBinding": {
		gvr:      roleBindings,
		at:       []string{"subjects"},
		manifest: replace(binding, "ROLE", "reader"),
		from:     `"ServiceAccount","name":"web"`,
		to:       `"ServiceAccount","name":"other"`,
		drift:    `{"subjects":[]}`,
	},
	"ClusterRole": {
		gvr:     clusterRoles,
		cluster: true,
		at:      []string{"rules"},
		manifest: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"CLUSTER"},
			"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`,
		from:  `"get"`,
		to:    `"list"`,
		drift: `{"rules":[]}`,
	},
	"ClusterRoleBinding": {
		gvr:     clusterRoleBindings,
		cluster: true,
		at:      []string{"subjects"},
		manifest: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"CLUSTER"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},
			"subjects":[{"kind":"ServiceAccount","name":"web","namespace":"NS"}]}`,
		from:  `"name":"web"`,
		to:    `"name":"other"`,
		drift: `{"subjects":[]}`,
	},
	"Job": {
		gvr: resource("batch", "v1", "jobs"),
		at:  []string{"spec", "parallelism"},
		manifest: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"k","namespace":"NS"},
			"spec":{"parallelism":1,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`,
		from:  `parallelism":1`,
		to:    `parallelism":2`,
		drift: `{"spec":{"parallelism":9}}`,
	},
	"Pod": {
		gvr: resource("", "v1", "pods"),
		at:  []string{"metadata", "labels", "a"},
		manifest: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"k","namespace":"NS","labels":{"a":"1"}},
			"spec":{"containers":[{"name":"c","image":"i"}]}}`,
		from:  `"a":"1"`,
		to:    `"a":"2"`,
		drift: `{"metadata":{"labels":{"a":"x"}}}`,
		stays: true,
	},
	"CustomResourceDefinition": {
		gvr:     definitions,
		cluster: true,
		at:      []string{"spec", "names", "shortNames"},
		manifest: `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.CLUSTER"},
			"spec":{"group":"CLUSTER","scope":"Namespaced","names":{"kind":"Thing","plural":"things","shortNames":["th"]},
			"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`,
		from:  `["th"]`,
		to:    `["tg"]`,
		drift: `{"spec":{"names":{"shortNames":["x"]}}}`,
	},
	"ValidatingWebhookConfiguration": {
		gvr:     resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
		cluster: true,
		at:      []string{"metadata", "labels", "a"},
		kept:    true,
		manifest: `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration",
			"metadata":{"name":"CLUSTER","labels":{"a":"1"}},` + webhooks,
		from:  `"a":"1"`,
		to:    `"a":"2"`,
		drift: `{"metadata":{"labels":{"a":"x"}}}`,
	},
	"MutatingWebhookConfiguration": {
		gvr:     resource("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"),
		cluster: true,
		at:      []string{"webhooks"},
		kept:    true,
		manifest: `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration",
			"metadata":{"name":"CLUSTER"},` + webhooks,
		from:  `"Ignore"`,
		to:    `"Fail"`,
		drift: `{"webhooks":[]}`,
	},
	"ValidatingAdmissionPolicy": {
		gvr:     resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"),
		cluster: true,
		at:      []string{"spec", "validations"},
		manifest: `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy",
			"metadata":{"name":"CLUSTER"},"spec":{
			"matchConstraints":{"resourceRules":[{"apiGroups":["none.example.com"],"apiVersions":["v1"],"operations":["CREATE"],
			"resources":["nones"]}]},
			"validations":[{"expression":"object.a == 1"}]}}`,
		from:  `== 1`,
		to:    `== 2`,
		drift: `{"spec":{"validations":[{"expression":"false"}]}}`,
	},
	"ValidatingAdmissionPolicyBinding": {
		gvr:     resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings"),
		cluster: true,
		at:      []string{"spec", "policyName"},
		manifest: `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding",
			"metadata":{"name":"CLUSTER"},"spec":{"policyName":"none","validationActions":["Deny"]}}`,
		from:  `"none"`,
		to:    `"other"`,
		drift: `{"spec":{"policyName":"theirs"}}`,
	},
	"ServiceMonitor": {
		gvr: resource("monitoring.coreos.com", "v1", "servicemonitors"),
		at:  []string{"spec", "endpoints"},
		manifest: `{"apiVersion":"monitoring.coreos.com/v1","kind":"ServiceMonitor","metadata":{"name":"k","namespace":"NS"},
			"spec":{"endpoints":[{"port":"web"}],"selector":{}}}`,
		from:  `"web"`,
		to:    `"metrics"`,
		drift: `{"spec":{"endpoints":[]}}`,
	},
	"PrometheusRule": {
		gvr: resource("monitoring.coreos.com", "v1", "prometheusrules"),
		at:  []string{"spec", "groups"},
		manifest: `{"apiVersion":"monitoring.coreos.com/v1","kind":"PrometheusRule","metadata":{"name":"k","namespace":"NS"},
			"spec":{"groups":[{"name":"g","rules":[{"alert":"A","expr":"up == 0"}]}]}}`,
		from:  `up == 0`,
		to:    `up == 1`,
		drift: `{"spec":{"groups":[]}}`,
	},
	"Alertmanager": {
		gvr: resource("monitoring.coreos.com", "v1", "alertmanagers"),
		at:  []string{"spec", "replicas"},
		manifest: `{"apiVersion":"monitoring.coreos.com/v1","kind":"Alertmanager","metadata":{"name":"k","namespace":"NS"},
			"spec":{"replicas":1}}`,
		from:  `replicas":1`,
		to:    `replicas":2`,
		drift: `{"spec":{"replicas":9}}`,
	},
	"Prometheus": {
		gvr: resource("monitoring.coreos.com", "v1", "prometheuses"),
		at:  []string{"spec", "replicas"},
		manifest: `{"apiVersion":"monitoring.coreos.com/v1","kind":"Prometheus","metadata":{"name":"k","namespace":"NS"},
			"spec":{"replicas":1}}`,
		from:  `replicas":1`,
		to:    `replicas":2`,
		drift: `{"spec":{"replicas":null}}`,
	},
	"VolumeSnapshotClass": {
		gvr:     resource("snapshot.storage.k8s.io", "v1", "volumesnapshotclasses"),
		cluster: true,
		at:      []string{"deletionPolicy"},
		manifest: `{"apiVersion":"snapshot.storage.k8s.io/v1","kind":"VolumeSnapshotClass","metadata":{"name":"CLUSTER"},
			"driver":"example.com","deletionPolicy":"Delete"}`,
		from:  `"Delete"`,
		to:    `"Retain"`,
		drift: `{"deletionPolicy":null}`,
	},
}

// webhooks are the webhooks of a configuration that matches no existing resource.
const webhooks = `"webhooks":[{"name":"a.example.com","admissionReviewVersions":["v1"],"sideEffects":"None",
	"failurePolicy":"Ignore","clientConfig":{"url":"https://127.0.0.1:1/x"},
	"rules":[{"apiGroups":["none.example.com"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["nones"]}]}]}`

// foreignDefinitions returns definitions of the kinds in the table that are not part of
// Kubernetes. The content of their objects does not matter here.
func foreignDefinitions() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for kind, name := range map[string]string{
		"ServiceMonitor": "servicemonitors.monitoring.coreos.com", "PrometheusRule": "prometheusrules.monitoring.coreos.com",
		"Alertmanager": "alertmanagers.monitoring.coreos.com", "Prometheus": "prometheuses.monitoring.coreos.com",
		"VolumeSnapshotClass": "volumesnapshotclasses.snapshot.storage.k8s.io",
	} {
		plural, group, _ := strings.Cut(name, ".")
		scope := "Namespaced"
		if kind == "VolumeSnapshotClass" {
			scope = "Cluster"
		}
		out = append(out, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			// The API group of snapshots is protected and needs this annotation.
			"metadata": map[string]any{
				"name":        name,
				"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for tests"},
			},
			"spec": map[string]any{
				"group": group, "scope": scope,
				"names": map[string]any{"kind": kind, "plural": plural},
				"versions": []any{
					map[string]any{
						"name": "v1", "served": true, "storage": true,
						"schema": map[string]any{
							"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
						},
					},
				},
			},
		}})
	}
	return out
}
