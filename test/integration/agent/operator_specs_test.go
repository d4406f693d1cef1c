// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// badSpec is a spec that the API admits and no agent can use, or leaves out.
type badSpec struct {
	// spec is what makes it so, and good what mends it, as merge patches of the spec.
	spec, good string
	// kind is the condition that tells it with reason, and text a part of its message.
	kind, reason, text string
}

// badSpecs has the fields of a Klusterlet whose values the definition cannot check.
var badSpecs = map[string]badSpec{
	"mode": {
		`{"deployOption":{"mode":"Elsewhere"}}`, `{"deployOption":{"mode":"Singleton"}}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "deployOption.mode Elsewhere does not exist",
	},
	"namespace": {
		`{"namespace":"open-cluster-management-agent-addon"}`, `{"namespace":"open-cluster-management-specs"}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "set spec.namespace to another one",
	},
	"externalServerURLs.url": {
		`{"externalServerURLs":[{"url":"http://here"}]}`, `{"externalServerURLs":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, `external server URL "http://here"`,
	},
	"externalServerURLs.caBundle": {
		`{"externalServerURLs":[{"url":"https://here","caBundle":"eA=="}]}`, `{"externalServerURLs":null}`,
		"SpecSupported", "NotSupported", "externalServerURLs.caBundle",
	},
	"nodePlacement.nodeSelector": {
		`{"nodePlacement":{"nodeSelector":{"not a key":"x"}}}`, `{"nodePlacement":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonManagementClusterResourceApplyFailed, "not a key",
	},
	"nodePlacement.tolerations": {
		`{"nodePlacement":{"tolerations":[{"operator":"Equal"}]}}`, `{"nodePlacement":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonManagementClusterResourceApplyFailed, "tolerations[0]",
	},
	"priorityClassName": {
		`{"priorityClassName":"Not A Name"}`, `{"priorityClassName":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonManagementClusterResourceApplyFailed, "priorityClassName",
	},
	"resourceRequirement": {
		`{"resourceRequirement":{"type":"ResourceRequirement","resourceRequirements":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}}}`,
		`{"resourceRequirement":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonManagementClusterResourceApplyFailed, "must be less than or equal to cpu limit",
	},
	"resourceRequirement, not a quantity": {
		`{"resourceRequirement":{"type":"ResourceRequirement","resourceRequirements":{"requests":{"cpu":"1e99999999999999999999"}}}}`,
		`{"resourceRequirement":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "the spec cannot be read",
	},
	"addOnKubeClientRegistrationDriver.token.expirationSeconds": {
		`{"registrationConfiguration":{"addOnKubeClientRegistrationDriver":{"authType":"token","token":{"expirationSeconds":1}}}}`,
		`{"registrationConfiguration":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "add-on token expiration of 1 seconds",
	},
	"bootstrapKubeConfigs without its gate": {
		`{"registrationConfiguration":{"bootstrapKubeConfigs":{"type":"LocalSecrets","localSecretsConfig":{"kubeConfigSecrets":[{"name":"a"},{"name":"b"}]}}}}`,
		`{"registrationConfiguration":null}`, "SpecSupported", "NotSupported", "bootstrapKubeConfigs (enable the feature gate MultipleHubs)",
	},
	"bootstrapKubeConfigs with one hub": {
		`{"registrationConfiguration":{"featureGates":[{"feature":"MultipleHubs","mode":"Enable"}],
			"bootstrapKubeConfigs":{"type":"LocalSecrets","localSecretsConfig":{"kubeConfigSecrets":[{"name":"a"}]}}}}`,
		`{"registrationConfiguration":null}`, operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "name at least two secrets",
	},
	"bootstrapKubeConfigs with the name of no secret": {
		`{"registrationConfiguration":{"featureGates":[{"feature":"MultipleHubs","mode":"Enable"}],
			"bootstrapKubeConfigs":{"type":"LocalSecrets","localSecretsConfig":{"kubeConfigSecrets":[{"name":"a"},{"name":"Not A Name"}]}}}}`,
		`{"registrationConfiguration":null}`, operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, `"Not A Name": is not the name of a secret`,
	},
	"clientCertExpirationSeconds": {
		`{"registrationConfiguration":{"clientCertExpirationSeconds":10}}`, `{"registrationConfiguration":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "client certificate expiration of 10 seconds",
	},
	"clusterAnnotations": {
		`{"registrationConfiguration":{"clusterAnnotations":{"agent.open-cluster-management.io/not a key":"x"}}}`, `{"registrationConfiguration":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "registrationConfiguration.clusterAnnotations",
	},
	"clusterClaimConfiguration.maxCustomClusterClaims": {
		`{"registrationConfiguration":{"clusterClaimConfiguration":{"maxCustomClusterClaims":-1}}}`, `{"registrationConfiguration":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "maximum of custom cluster claims -1",
	},
	"clusterLabels": {
		`{"registrationConfiguration":{"clusterLabels":{"a":"b"}}}`, `{"registrationConfiguration":null}`,
		"SpecSupported", "NotSupported", "registrationConfiguration.clusterLabels",
	},
	"registrationConfiguration.featureGates": {
		`{"registrationConfiguration":{"featureGates":[{"feature":"NoSuch","mode":"Enable"}]}}`, `{"registrationConfiguration":null}`,
		operatorv1.ConditionValidFeatureGates, operatorv1.ReasonInvalidFeatureGatesExisting, "NoSuch",
	},
	"registrationConfiguration.kubeAPIQPS": {
		`{"registrationConfiguration":{"kubeAPIQPS":-1}}`, `{"registrationConfiguration":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "registrationConfiguration.kubeAPIQPS=-1",
	},
	"registrationConfiguration.kubeAPIBurst": {
		`{"registrationConfiguration":{"kubeAPIBurst":-1}}`, `{"registrationConfiguration":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "registrationConfiguration.kubeAPIBurst=-1",
	},
	"registrationDriver": {
		`{"registrationConfiguration":{"registrationDriver":{"authType":"grpc"}}}`, `{"registrationConfiguration":null}`,
		"SpecSupported", "NotSupported", "registrationConfiguration.registrationDriver grpc",
	},
	"appliedManifestWorkEvictionGracePeriod": {
		`{"workConfiguration":{"appliedManifestWorkEvictionGracePeriod":"99999999999999999999h"}}`, `{"workConfiguration":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "the spec cannot be read",
	},
	"workConfiguration.featureGates": {
		`{"workConfiguration":{"featureGates":[{"feature":"ClusterClaim","mode":"Disable"}]}}`, `{"workConfiguration":null}`,
		operatorv1.ConditionValidFeatureGates, operatorv1.ReasonInvalidFeatureGatesExisting, "ClusterClaim",
	},
	"workConfiguration.kubeAPIQPS": {
		`{"workConfiguration":{"kubeAPIQPS":-1}}`, `{"workConfiguration":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "workConfiguration.kubeAPIQPS=-1",
	},
	"workConfiguration.hubKubeAPIBurst": {
		`{"workConfiguration":{"hubKubeAPIBurst":-1}}`, `{"workConfiguration":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "workConfiguration.hubKubeAPIBurst=-1",
	},
	"statusSyncInterval": {
		`{"workConfiguration":{"statusSyncInterval":"0s"}}`, `{"workConfiguration":null}`,
		operatorv1.ConditionApplied, operatorv1.ReasonKlusterletApplyFailed, "workConfiguration.statusSyncInterval=0s",
	},
}

// testSpecs: a value that the API admits and no agent can use is told with its field, what runs stays
// as it is, and the next good value is in effect.
func testSpecs(t *testing.T, o *operated) {
	o.create(t, `{"deployOption":{"mode":"Singleton"}}`)
	before := o.awaitDeployment(t, "-agent", exists)
	o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied)
	for name, tc := range badSpecs {
		o.patch(t, klusterlets, "", o.name, `{"spec":`+tc.spec+`}`)
		o.awaitTold(t, name, tc.kind, metav1.ConditionFalse, tc.reason, tc.text)
		now := o.deployment(t, "-agent")
		require.Equal(t, before.UID, now.UID, name)
		if tc.kind == operatorv1.ConditionApplied {
			require.Equal(t, before.Spec.Template, now.Spec.Template, name)
		}
		o.patch(t, klusterlets, "", o.name, `{"spec":`+tc.good+`}`)
		o.awaitTold(t, name, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied, "")
		o.awaitTold(t, name, "SpecSupported", metav1.ConditionTrue, "AllFieldsSupported", "")
		o.awaitTold(t, name, operatorv1.ConditionValidFeatureGates, metav1.ConditionTrue, operatorv1.ReasonFeatureGatesAllValid, "")
		o.awaitDeployment(t, "-agent", func(d *appsv1.Deployment) bool {
			return d.UID == before.UID && d.Spec.Template.String() == before.Spec.Template.String()
		})
	}
}

// awaitTold waits for a condition of the spec as it is now; the spec may be one that cannot be
// decoded.
func (o *operated) awaitTold(t *testing.T, name, kind string, status metav1.ConditionStatus, reason, text string) {
	t.Helper()
	var c *metav1.Condition
	await(t, func() bool {
		u := o.live(t, klusterlets, "", o.name)
		delete(u.Object, "spec")
		k, err := typed.FromUnstructured[operatorv1.Klusterlet](u)
		require.NoError(t, err)
		c = apimeta.FindStatusCondition(k.Status.Conditions, kind)
		return c != nil && c.Status == status && c.Reason == reason && c.ObservedGeneration == k.Generation && strings.Contains(c.Message, text)
	}, "%s: %s is not %s %s %q but %+v", name, kind, status, reason, text, func() any { return c })
}
