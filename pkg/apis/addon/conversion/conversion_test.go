// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/conversion"
)

const (
	older = "addon.open-cluster-management.io/v1alpha1"
	newer = "addon.open-cluster-management.io/v1beta1"
)

// object makes an object of a kind and version from YAML.
func object(t *testing.T, kind, apiVersion, fields string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("kind: " + kind + "\napiVersion: " + apiVersion + "\n" + fields))
	require.NoError(t, err)
	return raw
}

// convert converts and returns YAML without kind and apiVersion, both checked.
func convert(t *testing.T, raw []byte, kind, apiVersion string) string {
	t.Helper()
	converted, err := conversion.Convert(raw, apiVersion)
	require.NoError(t, err)
	text, err := yaml.JSONToYAML(converted)
	require.NoError(t, err)
	head := "apiVersion: " + apiVersion + "\nkind: " + kind + "\n"
	require.Contains(t, string(text), head)
	return strings.Replace(string(text), head, "", 1)
}

func TestVersionsThatHaveBothFieldsKeepThem(t *testing.T) {
	cases := map[string]struct{ kind, older, newer string }{
		"an install namespace becomes an annotation": {
			kind:  "ManagedClusterAddOn",
			older: "metadata: {name: a, namespace: c1}\nspec: {installNamespace: ns}\n",
			newer: "metadata: {name: a, namespace: c1, annotations: {addon.open-cluster-management.io/v1alpha1-install-namespace: ns}}\nspec: {}\n",
		},
		"an install namespace stands beside other annotations": {
			kind: "ManagedClusterAddOn",
			older: "metadata: {name: a, annotations: {k: v}, uid: u, resourceVersion: '7'}\nspec: {installNamespace: ns, " +
				"configs: [{group: g, resource: r, name: nn}]}\n",
			newer: "metadata: {name: a, annotations: {k: v, addon.open-cluster-management.io/v1alpha1-install-namespace: " +
				"ns}, uid: u, resourceVersion: '7'}\nspec: {configs: [{group: g, resource: r, name: nn}]}\n",
		},
		"inline names repeat those of desiredConfig": {
			kind: "ManagedClusterAddOn",
			older: "status: {configReferences: [{group: g, resource: r, namespace: ns, name: nn, lastObservedGeneration: " +
				"3, desiredConfig: {namespace: ns, name: nn, specHash: h}}]}\n",
			newer: "status: {configReferences: [{group: g, resource: r, lastObservedGeneration: 3, desiredConfig: {namespace: ns, name: nn, specHash: h}}]}\n",
		},
		"the signer of the API server is a kubeClient with the driver": {
			kind:  "ManagedClusterAddOn",
			older: "status: {kubeClientDriver: token, registrations: [{signerName: kubernetes.io/kube-apiserver-client, subject: {user: u, groups: [g]}}]}\n",
			newer: "status: {registrations: [{type: kubeClient, kubeClient: {driver: token, subject: {user: u, groups: [g]}}}]}\n",
		},
		"every kubeClient gets the driver": {
			kind: "ManagedClusterAddOn",
			older: "status: {kubeClientDriver: csr, registrations: [{signerName: kubernetes.io/kube-apiserver-client}, " +
				"{signerName: a.b/c}, {signerName: kubernetes.io/kube-apiserver-client, subject: {user: u}}]}\n",
			newer: "status: {registrations: [{type: kubeClient, kubeClient: {driver: csr}}, {type: customSigner, " +
				"customSigner: {signerName: a.b/c}}, {type: kubeClient, kubeClient: {driver: csr, subject: {user: u}}}]}\n",
		},
		"another signer is a customSigner and keeps its organizational units": {
			kind:  "ManagedClusterAddOn",
			older: "status: {registrations: [{signerName: a.b/c, subject: {user: u, groups: [g], organizationUnit: [o, p]}}]}\n",
			newer: "status: {registrations: [{type: customSigner, customSigner: {signerName: a.b/c, subject: {user: u, groups: [g], organizationUnits: [o, p]}}}]}\n",
		},
		"a supported configuration with default is a default configuration": {
			kind:  "ClusterManagementAddOn",
			older: "spec: {supportedConfigs: [{group: g, resource: r, defaultConfig: {namespace: ns, name: nn}}, {group: '', resource: q, defaultConfig: {name: m}}]}\n",
			newer: "spec: {defaultConfigs: [{group: g, resource: r, namespace: ns, name: nn}, {group: '', resource: q, name: m}]}\n",
		},
		"a supported configuration without default has the reserved name": {
			kind:  "ClusterManagementAddOn",
			older: "spec: {supportedConfigs: [{group: g, resource: r}]}\n",
			newer: "spec: {defaultConfigs: [{group: g, resource: r, name: __reserved_no_default__}]}\n",
		},
		"default references are spelt otherwise": {
			kind:  "ClusterManagementAddOn",
			older: "status: {defaultconfigReferences: [{group: g, resource: r, desiredConfig: {name: nn, specHash: h}}]}\n",
			newer: "status: {defaultConfigReferences: [{group: g, resource: r, desiredConfig: {name: nn, specHash: h}}]}\n",
		},
		"fields that no rule names pass through, unknown ones too": {
			kind: "ClusterManagementAddOn",
			older: "metadata: {labels: {k: v}, managedFields: [{manager: m}]}\nspec: {addOnMeta: {displayName: d}, " +
				"installStrategy: {type: Placements, placements: [{name: p, namespace: nn, rolloutStrategy: {type: All, all: " +
				"{minSuccessTime: '0', maxFailures: 10%}}}]}, future: [1, 2.5, null, true]}\n",
			newer: "metadata: {labels: {k: v}, managedFields: [{manager: m}]}\nspec: {addOnMeta: {displayName: d}, " +
				"installStrategy: {type: Placements, placements: [{name: p, namespace: nn, rolloutStrategy: {type: All, all: " +
				"{minSuccessTime: '0', maxFailures: 10%}}}]}, future: [1, 2.5, null, true]}\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			require.YAMLEq(t, tc.newer, convert(t, object(t, tc.kind, older, tc.older), tc.kind, newer))
			require.YAMLEq(t, tc.older, convert(t, object(t, tc.kind, newer, tc.newer), tc.kind, older))
		})
	}
}

// TestLosses names everything that a way to the other version and back does not
// bring back. TestNothingElseIsLost shows that there is no more.
func TestLosses(t *testing.T) {
	cases := map[string]struct{ kind, from, to, before, after string }{
		"addOnConfiguration of a ClusterManagementAddOn is dropped": {
			kind: "ClusterManagementAddOn", from: older, to: newer,
			before: "spec: {addOnConfiguration: {crName: nn}}\n", after: "spec: {}\n",
		},
		"addOnConfiguration of a ManagedClusterAddOn is dropped": {
			kind: "ManagedClusterAddOn", from: older, to: newer,
			before: "status: {addOnConfiguration: {crName: nn}}\n", after: "status: {}\n",
		},
		"a configuration reference without desiredConfig loses its name": {
			kind: "ManagedClusterAddOn", from: older, to: newer,
			before: "status: {configReferences: [{group: g, resource: r, namespace: ns, name: nn}]}\n",
			after:  "status: {configReferences: [{group: g, resource: r}]}\n",
		},
		"an inline name gives way to that of desiredConfig": {
			kind: "ManagedClusterAddOn", from: older, to: newer,
			before: "status: {configReferences: [{group: g, resource: r, namespace: ns, name: nn, desiredConfig: {name: m}}]}\n",
			after:  "status: {configReferences: [{group: g, resource: r, name: m, desiredConfig: {name: m}}]}\n",
		},
		"organizational units of a client of the API server are dropped": {
			kind: "ManagedClusterAddOn", from: older, to: newer,
			before: "status: {registrations: [{signerName: kubernetes.io/kube-apiserver-client, subject: {user: u, organizationUnit: [o]}}]}\n",
			after:  "status: {registrations: [{signerName: kubernetes.io/kube-apiserver-client, subject: {user: u}}]}\n",
		},
		"a driver without a client of the API server is dropped": {
			kind: "ManagedClusterAddOn", from: older, to: newer,
			before: "status: {kubeClientDriver: csr}\n", after: "status: {}\n",
		},
		"the annotation of the install namespace becomes the field": {
			kind: "ManagedClusterAddOn", from: older, to: newer,
			before: "metadata: {annotations: {addon.open-cluster-management.io/v1alpha1-install-namespace: ns}}\n",
			after:  "metadata: {}\nspec: {installNamespace: ns}\n",
		},
		"a default that has the reserved name is none": {
			kind: "ClusterManagementAddOn", from: older, to: newer,
			before: "spec: {supportedConfigs: [{group: g, resource: r, defaultConfig: {namespace: ns, name: __reserved_no_default__}}]}\n",
			after:  "spec: {supportedConfigs: [{group: g, resource: r}]}\n",
		},
		"a default configuration with an empty name gets the reserved one": {
			kind: "ClusterManagementAddOn", from: newer, to: older,
			before: "spec: {defaultConfigs: [{group: g, resource: r, namespace: ns, name: ''}]}\n",
			after:  "spec: {defaultConfigs: [{group: g, resource: r, name: __reserved_no_default__}]}\n",
		},
		"the first client of the API server decides the driver of all": {
			kind: "ManagedClusterAddOn", from: newer, to: older,
			before: "status: {registrations: [{type: kubeClient, kubeClient: {driver: csr}}, {type: kubeClient, kubeClient: {driver: token}}]}\n",
			after:  "status: {registrations: [{type: kubeClient, kubeClient: {driver: csr}}, {type: kubeClient, kubeClient: {driver: csr}}]}\n",
		},
		"a custom signer that is the API server's becomes a client of it": {
			kind: "ManagedClusterAddOn", from: newer, to: older,
			before: "status: {registrations: [{type: customSigner, customSigner: {signerName: " +
				"kubernetes.io/kube-apiserver-client, subject: {user: u, organizationUnits: [o]}}}]}\n",
			after: "status: {registrations: [{type: kubeClient, kubeClient: {subject: {user: u}}}]}\n",
		},
		"a member that the type does not name is dropped": {
			kind: "ManagedClusterAddOn", from: newer, to: older,
			before: "status: {registrations: [{type: customSigner, customSigner: {signerName: a.b/c}, kubeClient: {driver: csr}}]}\n",
			after:  "status: {registrations: [{type: customSigner, customSigner: {signerName: a.b/c}}]}\n",
		},
		"an empty install namespace annotation is dropped": {
			kind: "ManagedClusterAddOn", from: newer, to: older,
			before: "metadata: {annotations: {k: v, addon.open-cluster-management.io/v1alpha1-install-namespace: ''}}\n",
			after:  "metadata: {annotations: {k: v}}\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			there, err := conversion.Convert(object(t, tc.kind, tc.from, tc.before), tc.to)
			require.NoError(t, err)
			require.YAMLEq(t, tc.after, convert(t, there, tc.kind, tc.from))
		})
	}
}

func TestPartialObjectsConvert(t *testing.T) {
	partial := []string{
		"", "metadata:\n", "spec:\n", "status:\n", "spec: {}\nstatus: {}\n",
		"metadata: {annotations:}\nspec: {installNamespace:, configs:, supportedConfigs:, defaultConfigs:}\n",
		"spec: {supportedConfigs: [], defaultConfigs: []}\n",
		"spec: {supportedConfigs: [{}, {defaultConfig:}, {defaultConfig: {}}]}\n",
		"spec: {defaultConfigs: [{}, {name:}, {namespace: nn}]}\n",
		"status: {registrations:, configReferences:, kubeClientDriver:}\n",
		"status: {registrations: [{}, {signerName:, subject:}, {subject: {}}, {type: kubeClient}, {type: customSigner}," +
			" {type: other}, {type: kubeClient, kubeClient: {subject:}}]}\n",
		"status: {configReferences: [{}, {desiredConfig:}, {desiredConfig: {}}]}\n",
	}
	for _, kind := range []string{"ManagedClusterAddOn", "ClusterManagementAddOn"} {
		for _, from := range []string{older, newer} {
			for _, fields := range partial {
				threeAsOne(t, object(t, kind, from, fields))
			}
		}
	}
}

func TestWhatCannotBeConverted(t *testing.T) {
	cases := map[string]struct{ raw, to, want string }{
		"no JSON":   {`{`, newer, "decoding object to convert"},
		"no object": {`[]`, newer, "decoding object to convert"},
		"null":      {`null`, newer, `converting kind ""`},
		"no kind":   {`{"apiVersion":"` + older + `"}`, newer, `converting kind ""`},
		"another kind": {
			`{"apiVersion":"` + older + `","kind":"AddOnTemplate"}`,
			newer,
			`converting kind "AddOnTemplate"`,
		},
		"another group": {`{"apiVersion":"v1","kind":"ManagedClusterAddOn"}`, newer, `from "v1" to`},
		"an unknown target": {
			`{"apiVersion":"` + older + `","kind":"ManagedClusterAddOn"}`,
			"addon.open-cluster-management.io/v2",
			`/v2"`,
		},
		"spec is text": {
			`{"apiVersion":"` + older + `","kind":"ManagedClusterAddOn","spec":"x"}`,
			newer,
			"field spec is string, not an object",
		},
		"status is text": {
			`{"apiVersion":"` + older + `","kind":"ClusterManagementAddOn","status":"x"}`,
			newer,
			"field status is string, not an object",
		},
		"a namespace is a number": {
			`{"apiVersion":"` + older + `","kind":"ManagedClusterAddOn","spec":{"installNamespace":1}}`, newer,
			"converting ManagedClusterAddOn to " + newer + ": field installNamespace is int64, not a string",
		},
		"a list is an object": {
			`{"apiVersion":"` + newer + `","kind":"ClusterManagementAddOn","spec":{"defaultConfigs":{}}}`, older,
			"field defaultConfigs is map[string]interface {}, not a list",
		},
		"an entry is text": {
			`{"apiVersion":"` + newer + `","kind":"ManagedClusterAddOn","status":{"registrations":[{},"x"]}}`, older,
			"entry 1 of field registrations is string, not an object",
		},
		"a signer is a number": {
			`{"apiVersion":"` + older + `","kind":"ManagedClusterAddOn","status":{"registrations":[{"signerName":1}]}}`, newer,
			"entry 0 of field registrations: field signerName is int64, not a string",
		},
		"annotations are a list": {
			`{"apiVersion":"` + older + `","kind":"ManagedClusterAddOn","metadata":{"annotations":[]},"spec":{"installNamespace":"n"}}`, newer,
			"field annotations is []interface {}, not an object",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := conversion.Convert([]byte(tc.raw), tc.to)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestConversionToTheSameVersionChangesNothing(t *testing.T) {
	fields := "metadata: {annotations: {addon.open-cluster-management.io/v1alpha1-install-namespace: a}}\nspec: {installNamespace: b}\n"
	require.YAMLEq(t, fields, convert(t, object(t, "ManagedClusterAddOn", older, fields), "ManagedClusterAddOn", older))
}

func TestTheGivenObjectStaysAsItIs(t *testing.T) {
	given := func() map[string]any {
		return map[string]any{
			"apiVersion": older, "kind": "ManagedClusterAddOn",
			"spec":   map[string]any{"installNamespace": "n"},
			"status": map[string]any{"registrations": []any{map[string]any{"signerName": "a.b/c"}}},
		}
	}
	object := given()
	_, err := conversion.Object(object, newer)
	require.NoError(t, err)
	require.Equal(t, given(), object)
}
