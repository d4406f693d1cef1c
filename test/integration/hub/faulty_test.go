// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// refuse makes the API server refuse to create or change objects of some names, until allow is
// called.
func (s *scene) refuse(t *testing.T, reason metav1.StatusReason, names ...string) (allow func()) {
	t.Helper()
	ctx := context.Background()
	api := s.kube.AdmissionregistrationV1()
	every := []string{"*"}
	_, err := api.ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "refuse"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: every, APIVersions: every, Resources: []string{"configmaps", "networkpolicies", "serviceaccounts"},
					},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("!(object.metadata.name in ['asked', '%s'])", strings.Join(names, "', '")), Message: "refused for a test", Reason: &reason,
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "refuse"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "refuse", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	soon(t, func() bool {
		_, err = s.kube.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "asked"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "refused for a test")
	}, "the policy is in effect: %v", &err)
	return func() {
		require.NoError(t, api.ValidatingAdmissionPolicyBindings().Delete(ctx, "refuse", metav1.DeleteOptions{}))
		require.NoError(t, api.ValidatingAdmissionPolicies().Delete(ctx, "refuse", metav1.DeleteOptions{}))
	}
}

// awaitCondition waits until the ClusterManager has a condition with these texts in its message; an
// empty status means that it has none of that type.
func (s *scene) awaitCondition(t *testing.T, kind string, status metav1.ConditionStatus, reason string, texts ...string) {
	t.Helper()
	var c *metav1.Condition
	soon(t, func() bool {
		u, err := s.dyn.Resource(managers).Get(context.Background(), hub.Name, metav1.GetOptions{})
		require.NoError(t, err)
		delete(u.Object, "spec") // some cannot be decoded
		cm, err := typed.FromUnstructured[operatorv1.ClusterManager](u)
		require.NoError(t, err)
		if c = apimeta.FindStatusCondition(cm.Status.Conditions, kind); c == nil || status == "" {
			return (c == nil) == (status == "")
		}
		return c.Status == status && c.Reason == reason && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(c.Message, text) })
	}, "%s %s %s %v: %+v", kind, status, reason, texts, &c)
}

// awaitApplied waits until the ClusterManager reports that it is applied, or why not.
func (s *scene) awaitApplied(t *testing.T, status metav1.ConditionStatus, reason string, texts ...string) {
	t.Helper()
	s.awaitCondition(t, operatorv1.ConditionApplied, status, reason, texts...)
}

// processes returns what identifies the pods of the hub, and how often they started.
func (s *scene) processes(t *testing.T) map[string]int32 {
	t.Helper()
	out := map[string]int32{}
	for _, namespace := range []string{hub.Namespace, hub.ComponentNamespace} {
		pods, err := s.kube.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err)
		for i := range pods.Items {
			for _, c := range pods.Items[i].Status.ContainerStatuses {
				out[string(pods.Items[i].UID)] = c.RestartCount
			}
		}
	}
	require.NotEmpty(t, out)
	return out
}

// TestWhatFailsIsTold breaks what the hub applies, restores and reads: the condition says what fails
// and why, nothing that runs is harmed, and the hub recovers by itself.
func TestWhatFailsIsTold(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{hub.LayoutCompact, hub.LayoutSplit} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			s := emptyHub(t)
			if layout == hub.LayoutCompact {
				s.storeAsOlderHubs(t)
				s.installAs(t, layout)
				t.Run("a version that is gone", s.testStored)
			} else {
				s.installAs(t, layout, "Deployment")
				s.startOperator(t, "--image-pull-secret-name=mirror")
			}
			s.awaitHub(t)
			before := s.processes(t)
			t.Run("an apply", s.testRefusedApply)
			t.Run("a part of the installation", s.testRefusedPart)
			for name, tc := range badSpecs {
				if text := tc.text[layout]; text != "" {
					t.Run(name, func(t *testing.T) { s.testBadSpec(t, tc, text) })
				}
			}
			require.Equal(t, before, s.processes(t))
			if layout == hub.LayoutSplit {
				t.Run("credentials of another name", s.testPullSecret) // replaces pods
			}
		})
	}
}

// startOperator applies the Deployment of the split layout with a further argument.
func (s *scene) startOperator(t *testing.T, argument string) {
	t.Helper()
	objects, err := hub.Objects(hub.Options{Image: image + ":" + tag, Version: tag, Layout: hub.LayoutSplit})
	require.NoError(t, err)
	for _, u := range objects {
		if u.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		container := containers[0].(map[string]any)
		container["args"] = append(container["args"].([]any), argument)
		require.NoError(t, unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"))
		_, err = s.dyn.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(u.GetNamespace()).
			Apply(context.Background(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
		require.NoError(t, err)
	}
}

// testPullSecret: the components get a copy under the usual name, to which the operator has rights, and it
// follows its source.
func (s *scene) testPullSecret(t *testing.T) {
	ctx := context.Background()
	secrets := s.kube.CoreV1().Secrets(hub.Namespace)
	copied := func(want string) func() bool {
		return func() bool {
			u, err := s.kube.CoreV1().Secrets(hub.ComponentNamespace).Get(ctx, operatorv1.SecretImagePull, metav1.GetOptions{})
			if want == "" {
				return apierrors.IsNotFound(err)
			}
			return err == nil && string(u.Data[corev1.DockerConfigJsonKey]) == want
		}
	}
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}, Type: corev1.SecretTypeDockerConfigJson}
	source.StringData = map[string]string{corev1.DockerConfigJsonKey: `{"auths":{"a":{}}}`}
	_, err := secrets.Create(ctx, source, metav1.CreateOptions{})
	require.NoError(t, err)
	soon(t, copied(`{"auths":{"a":{}}}`), "there is no copy")
	_, err = secrets.Patch(ctx, "mirror", types.MergePatchType, []byte(`{"stringData":{".dockerconfigjson":"{\"auths\":{\"b\":{}}}"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	soon(t, copied(`{"auths":{"b":{}}}`), "the copy does not follow")
	require.NoError(t, secrets.Delete(ctx, "mirror", metav1.DeleteOptions{}))
	soon(t, copied(""), "the copy is left")
}

func (s *scene) testRefusedApply(t *testing.T) {
	allow := s.refuse(t, metav1.StatusReasonForbidden, hub.ProcessPolicy, "allow-egress")
	s.manage(t, `{"spec":{"registrationConfiguration":{"featureGates":[{"feature":"NetworkPolicies","mode":"Enable"}]}}}`)
	s.awaitApplied(t, metav1.ConditionFalse, operatorv1.ReasonRuntimeResourceApplyFailed, "applying NetworkPolicy", "refused for a test", "permit it")
	allow()
	s.awaitApplied(t, metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	s.manage(t, `{"spec":{"registrationConfiguration":{"featureGates":null}}}`)
}

func (s *scene) testRefusedPart(t *testing.T) {
	allow := s.refuse(t, metav1.StatusReasonInvalid, hub.AddOnManager)
	require.NoError(t, s.kube.CoreV1().ServiceAccounts(hub.ComponentNamespace).Delete(context.Background(), hub.AddOnManager, metav1.DeleteOptions{}))
	s.awaitApplied(t, metav1.ConditionFalse, operatorv1.ReasonHubResourceApplyFailed, hub.AddOnManager, "refused for a test", "change what refuses it")
	allow()
	s.awaitApplied(t, metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
}

// badSpec is a spec that the API admits and the hub cannot use, or leaves out.
type badSpec struct {
	// spec is what makes it so, and good what mends it, as merge patches of the spec.
	spec, good string
	// kind is the condition that tells it; text is a part of its message by layout.
	kind string
	text map[string]string
}

func everywhere(text string) map[string]string {
	return map[string]string{hub.LayoutCompact: text, hub.LayoutSplit: text}
}

// badSpecs has the fields of a ClusterManager whose values the definition cannot check.
var badSpecs = map[string]badSpec{
	"resources that cannot be read": {
		`{"resourceRequirement":{"type":"ResourceRequirement","resourceRequirements":{"requests":{"cpu":"1e99999999999999999999"}}}}`,
		`{"resourceRequirement":null}`, operatorv1.ConditionApplied, everywhere("the spec cannot be read"),
	},
	"resources that contradict each other": {
		`{"resourceRequirement":{"type":"ResourceRequirement","resourceRequirements":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}}}`,
		`{"resourceRequirement":null}`, operatorv1.ConditionApplied, map[string]string{hub.LayoutSplit: "must be less than or equal to cpu limit"},
	},
	"resources of another layout": {
		`{"resourceRequirement":{"type":"BestEffort"}}`, `{"resourceRequirement":null}`, "SpecSupported",
		map[string]string{hub.LayoutCompact: "resourceRequirement (the compact layout is one Deployment"},
	},
	"a label that is none": {
		`{"nodePlacement":{"nodeSelector":{"not a key":"x"}}}`, `{"nodePlacement":null}`, operatorv1.ConditionApplied,
		map[string]string{hub.LayoutSplit: "not a key"},
	},
	"a toleration that is none": {
		`{"nodePlacement":{"tolerations":[{"operator":"Equal"}]}}`, `{"nodePlacement":null}`, operatorv1.ConditionApplied,
		map[string]string{hub.LayoutSplit: "spec.template.spec.tolerations[0]"},
	},
	"nodes of another layout": {
		`{"nodePlacement":{"nodeSelector":{"a":"b"}}}`, `{"nodePlacement":null}`, "SpecSupported",
		map[string]string{hub.LayoutCompact: "nodePlacement (the compact layout is one Deployment"},
	},
	"an image of another layout": {
		`{"workImagePullSpec":"example.com/work"}`, `{"workImagePullSpec":null}`, "SpecSupported",
		map[string]string{hub.LayoutCompact: "workImagePullSpec (the compact layout is one Deployment"},
	},
	"an image of another distribution": {
		`{"placementImagePullSpec":"mirror.example/ocm/placement:v1.3.1"}`, `{"placementImagePullSpec":null}`, operatorv1.ConditionApplied,
		map[string]string{hub.LayoutSplit: `spec.placementImagePullSpec="mirror.example/ocm/placement:v1.3.1" seems to be a mirror`},
	},
	"no port": {
		`{"deployOption":{"default":{"workWebhookConfiguration":{"bindConfiguration":{"port":0}}}}}`, `{"deployOption":{"default":null}}`,
		operatorv1.ConditionApplied, map[string]string{hub.LayoutSplit: "spec.deployOption.default.workWebhookConfiguration.bindConfiguration.port=0"},
	},
	"the port of health": {
		`{"deployOption":{"default":{"addonWebhookConfiguration":{"bindConfiguration":{"port":8443}}}}}`, `{"deployOption":{"default":null}}`,
		operatorv1.ConditionApplied, map[string]string{hub.LayoutSplit: "spec.deployOption.default.addonWebhookConfiguration.bindConfiguration.port=8443"},
	},
	"ports of another layout": {
		`{"deployOption":{"default":{"registrationWebhookConfiguration":{"bindConfiguration":{"port":10443,"hostNetwork":true}}}}}`,
		`{"deployOption":{"default":null}}`, "SpecSupported",
		map[string]string{hub.LayoutCompact: "deployOption.default.registrationWebhookConfiguration.bindConfiguration (one process serves all webhooks"},
	},
	"ports that are not listened on": {
		`{"deployOption":{"default":{"workWebhookConfiguration":{"bindConfiguration":{"healthProbePort":8001,"metricsPort":0}}}}}`,
		`{"deployOption":{"default":null}}`, "SpecSupported",
		map[string]string{hub.LayoutSplit: "deployOption.default.workWebhookConfiguration.bindConfiguration.metricsPort (health and metrics are one server)"},
	},
	"addresses of another mode": {
		`{"deployOption":{"hosted":{"workWebhookConfiguration":{"address":"a"},"registrationWebhookConfiguration":{"address":"a"}}}}`,
		`{"deployOption":{"hosted":null}}`, "SpecSupported", everywhere("deployOption.hosted (deployOption.mode is not Hosted)"),
	},
	"another mode": {
		`{"deployOption":{"mode":"Hosted"}}`, `{"deployOption":{"mode":"Default"}}`, operatorv1.ConditionHubRegistrationDegraded,
		everywhere("A hub in mode Hosted does not run on its own cluster"),
	},
	"a gate that does not exist": {
		`{"registrationConfiguration":{"featureGates":[{"feature":"NoSuch","mode":"Enable"}]}}`, `{"registrationConfiguration":{"featureGates":null}}`,
		operatorv1.ConditionValidFeatureGates, everywhere("unknown: NoSuch"),
	},
	"a gate that is not served": {
		`{"placementConfiguration":{"featureGates":[{"feature":"SIGPlacementDecision","mode":"Enable"}]}}`, `{"placementConfiguration":null}`,
		operatorv1.ConditionValidFeatureGates, everywhere("not supported yet: SIGPlacementDecision"),
	},
	"a gate of another component": {
		`{"addOnManagerConfiguration":{"featureGates":[{"feature":"ClusterProfile","mode":"Enable"}]}}`, `{"addOnManagerConfiguration":null}`,
		operatorv1.ConditionValidFeatureGates, everywhere("unknown: ClusterProfile"),
	},
	"a registration driver that is not served": {
		`{"registrationConfiguration":{"registrationDrivers":[{"authType":"grpc"}]}}`, `{"registrationConfiguration":{"registrationDrivers":null}}`,
		operatorv1.ConditionValidFeatureGates, everywhere("registration driver grpc"),
	},
	"a work driver that is not served": {
		`{"workConfiguration":{"workDriver":"mqtt"}}`, `{"workConfiguration":{"workDriver":"kube"}}`, operatorv1.ConditionValidFeatureGates,
		everywhere("work driver mqtt"),
	},
	"a server of other transports": {
		`{"serverConfiguration":{"imagePullSpec":"example.com/server"}}`, `{"serverConfiguration":null}`, "SpecSupported",
		everywhere("serverConfiguration (there is no server of other transports)"),
	},
}

// testBadSpec: what the hub cannot use is told with its field, and gone once it is mended.
func (s *scene) testBadSpec(t *testing.T, tc badSpec, text string) {
	reasons := map[string]string{
		operatorv1.ConditionApplied: operatorv1.ReasonRuntimeResourceApplyFailed, operatorv1.ConditionValidFeatureGates: operatorv1.ReasonInvalidFeatureGatesExisting,
		operatorv1.ConditionHubRegistrationDegraded: "HostedModeNotServed", "SpecSupported": "NotSupported",
	}
	bad := metav1.ConditionFalse
	if tc.kind == operatorv1.ConditionHubRegistrationDegraded {
		bad = metav1.ConditionTrue
	}
	s.manage(t, `{"spec":`+tc.spec+`}`)
	s.awaitCondition(t, tc.kind, bad, reasons[tc.kind], text)
	s.manage(t, `{"spec":`+tc.good+`}`)
	s.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	s.awaitCondition(t, operatorv1.ConditionValidFeatureGates, metav1.ConditionTrue, operatorv1.ReasonFeatureGatesAllValid)
	s.awaitCondition(t, operatorv1.ConditionHubRegistrationDegraded, metav1.ConditionFalse, operatorv1.ReasonRegistrationFunctional)
	s.awaitCondition(t, "SpecSupported", "", "")
}
