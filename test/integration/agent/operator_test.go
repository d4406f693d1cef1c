// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/agent/operator"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	operatedPods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
)

// operated is one Klusterlet of a cluster with an operator.
type operated struct {
	*spoke
	h               *hub
	name, namespace string
}

// newOperated names a Klusterlet and its namespace.
func newOperated(s *spoke, h *hub, name string) *operated {
	return &operated{spoke: s, h: h, name: name, namespace: "open-cluster-management-" + name}
}

// create creates the Klusterlet with a spec as JSON; cluster name and namespace are set unless it
// says otherwise.
func (o *operated) create(t *testing.T, spec string) {
	t.Helper()
	fields := map[string]any{"clusterName": o.name, "namespace": o.namespace}
	require.NoError(t, json.Unmarshal([]byte(spec), &fields))
	_, err := o.client.Resource(klusterlets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet",
		"metadata": map[string]any{"name": o.name}, "spec": fields,
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func (o *operated) patch(t *testing.T, resource schema.GroupVersionResource, namespace, name, body string, subresource ...string) {
	t.Helper()
	_, err := o.client.Resource(resource).Namespace(namespace).
		Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresource...)
	require.NoError(t, err)
}

func (o *operated) remove(t *testing.T, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	require.NoError(t, o.client.Resource(resource).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// live reads an object; nil when it does not exist.
func (o *operated) live(t *testing.T, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u, err := o.client.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return u
}

func (o *operated) deployment(t *testing.T, suffix string) *appsv1.Deployment {
	t.Helper()
	u := o.live(t, deployments, o.namespace, o.name+suffix)
	if u == nil {
		return nil
	}
	d, err := typed.FromUnstructured[appsv1.Deployment](u)
	require.NoError(t, err)
	return d
}

// awaitDeployment waits for a Deployment that is as wanted.
func (o *operated) awaitDeployment(t *testing.T, suffix string, like func(*appsv1.Deployment) bool) *appsv1.Deployment {
	t.Helper()
	var d *appsv1.Deployment
	await(t, func() bool { d = o.deployment(t, suffix); return d != nil && like(d) }, "deployment %s: %+v", suffix, func() any { return d })
	return d
}

func exists(*appsv1.Deployment) bool { return true }

// run makes the pods of a Deployment available, as a kubelet does.
func (o *operated) run(t *testing.T, suffix string) {
	t.Helper()
	await(t, func() bool {
		pods, err := o.client.Resource(operatedPods).Namespace(o.namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, pod := range pods.Items {
			if strings.HasPrefix(pod.GetName(), o.name+suffix+"-") && pod.GetDeletionTimestamp() == nil {
				_, err := o.client.Resource(operatedPods).Namespace(o.namespace).Patch(t.Context(), pod.GetName(), types.MergePatchType,
					[]byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{}, "status")
				require.NoError(t, reconcileNotFound(err))
			}
		}
		d := o.deployment(t, suffix)
		return d != nil && d.Status.AvailableReplicas == 1
	}, "no pod of %s%s", o.name, suffix)
}

func reconcileNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (o *operated) awaitCondition(t *testing.T, kind string, status metav1.ConditionStatus, reason string) *metav1.Condition {
	t.Helper()
	var last *metav1.Condition
	await(t, func() bool {
		k, err := typed.Get[operatorv1.Klusterlet](t.Context(), o.client, klusterlets, "", o.name)
		require.NoError(t, err)
		last = apimeta.FindStatusCondition(k.Status.Conditions, kind)
		return last != nil && last.Status == status && last.Reason == reason && last.ObservedGeneration == k.Generation
	}, "%s: %s is not %s %s but %+v", o.name, kind, status, reason, func() any { return last })
	return last
}

// setSecret writes a secret of the agent.
func (o *operated) setSecret(t *testing.T, name string, data map[string][]byte) {
	t.Helper()
	encoded := map[string]any{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	apply(t, o.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": o.namespace, "name": name}, "data": encoded,
	}})
}

// TestAnOperatorServesEveryKlusterlet runs the operator of the split layout under its own token,
// on one cluster for all cases.
func TestAnOperatorServesEveryKlusterlet(t *testing.T) {
	t.Parallel()
	h, s, managed := newHub(t), newSpoke(t), newSpoke(t)
	objects, err := operator.Objects("registry.example/ocm-agent:test")
	require.NoError(t, err)
	for _, u := range objects {
		apply(t, s.client, u)
	}
	installItself(t, newOperated(s, h, "itself"))
	process := s.startIn(t, operatorv1.NamespaceOperator, operator.ServiceAccount, t.TempDir(), "operator")
	await(t, func() bool {
		_, err := s.client.Resource(klusterlets).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	// It needs the namespace of add-ons on the managed cluster while the others come and go.
	stays := newHosted(s, managed, h, "hosted-stays")
	stays.createIn(t, "SingletonHosted")
	stays.open(t)
	stays.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied)
	t.Run("cases", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *operated){
			"parts":      testParts,
			"connection": testConnection,
			"settings":   testSettings,
			"repair":     testRepair,
			"switch":     testSwitch,
			"moves":      testMoves,
			"policies":   testPolicies,
			"no-name":    testWithoutName,
			"refused":    testRefused,
			"specs":      testSpecs,
			"itself":     testServesItself,
			"joins":      testJoins,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, newOperated(s, h, name))
			})
		}
		for name, test := range map[string]func(*testing.T, *hosted){
			"hosted-joins":   testHosted,
			"hosted-broken":  testHostedBroken,
			"hosted-no-key":  testHostedWithoutAccess,
			"hosted-refused": testHostedRefused,
			"hosted-parts":   testHostedParts,
			"hosted-returns": testHostedReturns,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, newHosted(s, managed, h, name))
			})
		}
	})
	// It replaces the pods of all agents.
	testPullSecrets(t, newOperated(s, h, "pull"))
	testDeletedTogether(t, s, managed)
	require.True(t, process.running())
}

// testParts: everything of the mode Default is there, and goes with the Klusterlet.
func testParts(t *testing.T, o *operated) {
	o.create(t, `{}`)
	o.awaitDeployment(t, "-registration-agent", exists)
	o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied)
	o.awaitCondition(t, operatorv1.ConditionAvailable, metav1.ConditionFalse, operatorv1.ReasonNoAvailablePods)
	o.awaitCondition(t, operatorv1.ConditionRegistrationDesiredDegraded, metav1.ConditionTrue, operatorv1.ReasonUnavailablePods)
	o.awaitCondition(t, operatorv1.ConditionWorkDesiredDegraded, metav1.ConditionFalse, operatorv1.ReasonDeploymentsFunctional)
	require.Equal(t, map[string]int{
		"namespaces": 1, "serviceaccounts": 2, "deployments": 2, "clusterroles": 6, "clusterrolebindings": 8, "roles": 3, "rolebindings": 3,
	}, countLabelled(t, o.spoke, o.name))
	d := o.deployment(t, "-registration-agent")
	c := d.Spec.Template.Spec.Containers[0]
	require.Equal(t, "registry.example/ocm-agent:test", c.Image)
	require.Equal(t, []string{
		"registration", "--spoke-cluster-name=parts", "--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig", "--kube-api-qps=50", "--kube-api-burst=100",
	}, c.Args)
	k, err := typed.Get[operatorv1.Klusterlet](t.Context(), o.client, klusterlets, "", o.name)
	require.NoError(t, err)
	w := o.awaitDeployment(t, "-work-agent", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 0 })
	require.Equal(t, []string{
		"work", "--spoke-cluster-name=parts", "--workload-source-driver=kube", "--workload-source-config=/spoke/hub-kubeconfig/kubeconfig",
		"--agent-id=" + string(k.UID), "--terminate-on-files=/spoke/hub-kubeconfig/kubeconfig", "--status-sync-interval=60s",
	}, w.Spec.Template.Spec.Containers[0].Args)
	o.appliedWork(t, "parts-work", string(k.UID))
	o.remove(t, klusterlets, "", o.name)
	await(t, func() bool {
		return o.live(t, klusterlets, "", o.name) == nil && o.live(t, namespaces, "", o.namespace) == nil
	})
	roles, err := o.client.Resource(clusterRoles).List(t.Context(), metav1.ListOptions{LabelSelector: operatorv1.LabelCreatedByKlusterlet + "=" + o.name})
	require.NoError(t, err)
	require.Empty(t, roles.Items)
	work := o.live(t, appliedWorks, "", "parts-work")
	require.NotNil(t, work, "what works applied stays")
	require.Empty(t, work.GetFinalizers())
	require.NotNil(t, o.live(t, definitions, "", "appliedmanifestworks.work.open-cluster-management.io"))
}

// countLabelled counts the objects of a cluster with the label of a Klusterlet, without the
// namespace of add-ons.
func countLabelled(t *testing.T, s *spoke, klusterlet string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, gvr := range []schema.GroupVersionResource{
		namespaces, accounts, deployments, clusterRoles,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	} {
		list, err := s.client.Resource(gvr).List(t.Context(), metav1.ListOptions{LabelSelector: operatorv1.LabelCreatedByKlusterlet + "=" + klusterlet})
		require.NoError(t, err)
		counts[gvr.Resource] = len(slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
			return u.GetName() == operatorv1.NamespaceAgentAddOn
		}))
	}
	return counts
}

// testConnection: the conditions follow the secrets, and so do the replicas of works.
func testConnection(t *testing.T, o *operated) {
	o.create(t, `{}`)
	o.awaitCondition(t, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, "BootstrapSecretMissing,HubKubeConfigSecretMissing")
	o.setSecret(t, operatorv1.SecretHubKubeconfig, nil)
	o.awaitCondition(t, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, "BootstrapSecretMissing,HubKubeConfigMissing")
	o.awaitDeployment(t, "-work-agent", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 1 })
	o.setSecret(t, operatorv1.SecretBootstrapHubKubeconfig, map[string][]byte{"kubeconfig": o.h.bootstrap(t)})
	o.awaitCondition(t, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigMissing")
	o.setSecret(t, operatorv1.SecretHubKubeconfig, map[string][]byte{"kubeconfig": []byte("x"), "cluster-name": []byte(o.name)})
	o.awaitCondition(t, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigError")
	o.setSecret(t, operatorv1.SecretHubKubeconfig, map[string][]byte{"kubeconfig": o.h.bootstrap(t), "cluster-name": []byte(o.name)})
	o.awaitCondition(t, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigUnauthorized")
	o.setSecret(t, operatorv1.SecretHubKubeconfig, map[string][]byte{"kubeconfig": o.h.master(t), "cluster-name": []byte(o.name)})
	o.awaitCondition(t, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionFalse, operatorv1.ReasonHubConnectionFunctional)
	o.run(t, "-registration-agent")
	o.run(t, "-work-agent")
	o.awaitCondition(t, operatorv1.ConditionAvailable, metav1.ConditionTrue, operatorv1.ReasonKlusterletAvailable)
	o.awaitCondition(t, operatorv1.ConditionRegistrationDesiredDegraded, metav1.ConditionFalse, operatorv1.ReasonDeploymentsFunctional)
	o.remove(t, secrets, o.namespace, operatorv1.SecretHubKubeconfig)
	o.awaitCondition(t, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigSecretMissing")
	o.awaitDeployment(t, "-work-agent", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 0 })
}

// master returns a kubeconfig of the hub with all rights.
func (h *hub) master(t *testing.T) []byte {
	t.Helper()
	cfg := h.As(t, "default", "operated-master")
	grantAll(t, h.client)
	raw, err := h.endpoint("hub").WithToken(cfg.BearerToken)
	require.NoError(t, err)
	return raw
}

// testSettings: what the spec says is in the Deployments, and changes with it.
func testSettings(t *testing.T, o *operated) {
	o.create(t, `{"nodePlacement":{"nodeSelector":{"a":"b"},"tolerations":[{"key":"k","operator":"Exists"}]},"priorityClassName":"system-node-critical",
		"hubApiServerHostAlias":{"ip":"10.0.0.1","hostname":"hub.example"},"externalServerURLs":[{"url":"https://one"},{"url":"https://two"}],
		"registrationImagePullSpec":"quay.io/open-cluster-management/registration:latest","workImagePullSpec":"mine/ocm-agent:1",
		"resourceRequirement":{"type":"ResourceRequirement","resourceRequirements":{"requests":{"cpu":"7m"}}},
		"registrationConfiguration":{"clientCertExpirationSeconds":3600,
			"featureGates":[{"feature":"ClusterClaim","mode":"Disable"},{"feature":"ClusterProperty","mode":"Enable"},{"feature":"Walk","mode":"Enable"}],
			"clusterAnnotations":{"agent.open-cluster-management.io/b":"2","agent.open-cluster-management.io/a":"1","x":"y"},
			"clusterClaimConfiguration":{"maxCustomClusterClaims":5,"reservedClusterClaimSuffixes":["s.io"]}},
		"workConfiguration":{"kubeAPIQPS":3,"hubKubeAPIBurst":9,"statusSyncInterval":"30s",
			"featureGates":[{"feature":"RawFeedbackJsonString","mode":"Enable"}]}}`)
	both := map[string]*appsv1.Deployment{}
	for _, suffix := range []string{"-registration-agent", "-work-agent"} {
		d := o.awaitDeployment(t, suffix, exists)
		both[suffix] = d
		pod := d.Spec.Template.Spec
		require.Equal(t, map[string]string{"a": "b"}, pod.NodeSelector)
		require.Equal(t, []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}, pod.Tolerations)
		require.Equal(t, "system-node-critical", pod.PriorityClassName)
		require.Equal(t, []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"hub.example"}}}, pod.HostAliases)
		require.Equal(t, "7m", pod.Containers[0].Resources.Requests.Cpu().String())
		require.Equal(t, appsv1.RecreateDeploymentStrategyType, d.Spec.Strategy.Type)
		require.NotEmpty(t, d.Annotations[operatorv1.AnnotationSpecHash])
		require.True(t, *pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem)
	}
	require.Equal(t, []string{
		"registration", "--spoke-cluster-name=settings", "--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig",
		"--spoke-external-server-urls=https://one,https://two", "--client-cert-expiration-seconds=3600",
		"--cluster-annotations=agent.open-cluster-management.io/a=1,agent.open-cluster-management.io/b=2",
		"--max-custom-cluster-claims=5", "--reserved-cluster-claim-suffixes=s.io", "--feature-gates=ClusterClaim=false",
		"--feature-gates=ClusterProperty=true", "--kube-api-qps=50", "--kube-api-burst=100",
	}, both["-registration-agent"].Spec.Template.Spec.Containers[0].Args)
	work := both["-work-agent"].Spec.Template.Spec.Containers[0]
	require.Equal(t, "mine/ocm-agent:1", work.Image)
	require.Equal(t, "registry.example/ocm-agent:test", both["-registration-agent"].Spec.Template.Spec.Containers[0].Image)
	require.Equal(t, []string{
		"--status-sync-interval=30s", "--hub-kube-api-qps=50", "--hub-kube-api-burst=9",
		"--feature-gates=RawFeedbackJsonString=true", "--kube-api-qps=3", "--kube-api-burst=100",
	}, work.Args[6:])
	await(t, func() bool { return o.live(t, definitions, "", "clusterproperties.about.k8s.io") != nil }, "the API of a third party")
	gates := o.awaitCondition(t, operatorv1.ConditionValidFeatureGates, metav1.ConditionFalse, operatorv1.ReasonInvalidFeatureGatesExisting)
	require.Contains(t, gates.Message, "Walk")
	o.patch(t, klusterlets, "", o.name, `{"spec":{"registrationConfiguration":null,"hubApiServerHostAlias":null,"nodePlacement":null}}`)
	d := o.awaitDeployment(t, "-registration-agent", func(d *appsv1.Deployment) bool { return len(d.Spec.Template.Spec.Containers[0].Args) == 6 })
	require.Empty(t, d.Spec.Template.Spec.HostAliases)
	require.Empty(t, d.Spec.Template.Spec.NodeSelector)
	o.awaitCondition(t, operatorv1.ConditionValidFeatureGates, metav1.ConditionTrue, operatorv1.ReasonFeatureGatesAllValid)
	await(t, func() bool {
		k, err := typed.Get[operatorv1.Klusterlet](t.Context(), o.client, klusterlets, "", o.name)
		require.NoError(t, err)
		return slices.ContainsFunc(k.Status.Generations, func(g operatorv1.GenerationStatus) bool {
			return g.Name == d.Name && g.LastGeneration == d.Generation
		})
	}, "the status has the generation of the Deployment")
}

// testRepair: what somebody changes or deletes is put back at once.
func testRepair(t *testing.T, o *operated) {
	o.create(t, `{"deployOption":{"mode":"Singleton"}}`)
	d := o.awaitDeployment(t, "-agent", exists)
	args := d.Spec.Template.Spec.Containers[0].Args
	o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied)
	o.patch(t, deployments, o.namespace, d.Name, `{"spec":{"replicas":3,"template":{"spec":{"nodeSelector":{"x":"y"}}}}}`)
	o.awaitDeployment(t, "-agent", func(d *appsv1.Deployment) bool {
		return *d.Spec.Replicas == 1 && len(d.Spec.Template.Spec.NodeSelector) == 0 && slices.Equal(d.Spec.Template.Spec.Containers[0].Args, args)
	})
	role := "kubectl-ocm:" + o.name + "-work:agent"
	rules := o.live(t, clusterRoles, "", role).Object["rules"]
	o.patch(t, clusterRoles, "", role, `{"rules":[]}`)
	await(t, func() bool { return fmt.Sprint(o.live(t, clusterRoles, "", role).Object["rules"]) == fmt.Sprint(rules) })
	o.patch(t, clusterRoles, "", "kubectl-ocm:"+o.name+"-work:aggregate", `{"aggregationRule":null}`)
	await(t, func() bool {
		return o.live(t, clusterRoles, "", "kubectl-ocm:"+o.name+"-work:aggregate").Object["aggregationRule"] != nil
	})
	for _, at := range []struct {
		gvr       schema.GroupVersionResource
		namespace string
		name      string
	}{{accounts, o.namespace, o.name + "-work-sa"}, {clusterRoles, "", role}, {deployments, o.namespace, d.Name}} {
		old := o.live(t, at.gvr, at.namespace, at.name).GetUID()
		o.remove(t, at.gvr, at.namespace, at.name)
		await(t, func() bool { u := o.live(t, at.gvr, at.namespace, at.name); return u != nil && u.GetUID() != old }, "%s is back", at.name)
	}
}

var policies = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}

// testPolicies: the gate's policies come, are put back and go with it; they know where the hub is.
func testPolicies(t *testing.T, o *operated) {
	gate := func(mode string) string {
		return `{"registrationConfiguration":{"featureGates":[{"feature":"NetworkPolicies","mode":"` + mode + `"}]}}`
	}
	count := func() int {
		list, err := o.client.Resource(policies).Namespace(o.namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return len(list.Items)
	}
	o.create(t, gate("Enable"))
	o.awaitCondition(t, "SpecSupported", metav1.ConditionTrue, "AllFieldsSupported")
	await(t, func() bool { return count() == 3 })
	for _, name := range []string{"allow-dns-and-api", "klusterlet-agent", "default-deny-all"} {
		spec := o.live(t, policies, o.namespace, name).Object["spec"]
		o.patch(t, policies, o.namespace, name, `{"spec":{"podSelector":{"matchLabels":{"x":"y"}},"egress":[{}],"ingress":[{}]}}`)
		await(t, func() bool { return reflect.DeepEqual(spec, o.live(t, policies, o.namespace, name).Object["spec"]) }, "%s is as before", name)
		o.remove(t, policies, o.namespace, name)
		await(t, func() bool { return o.live(t, policies, o.namespace, name) != nil }, "%s is back", name)
	}
	k, err := typed.Get[operatorv1.Klusterlet](t.Context(), o.client, klusterlets, "", o.name)
	require.NoError(t, err)
	require.Contains(t, k.Status.RelatedResources, operatorv1.RelatedResourceMeta{
		Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies", Namespace: o.namespace, Name: "default-deny-all",
	})
	o.patch(t, klusterlets, "", o.name, `{"spec":`+gate("Disable")+`}`)
	await(t, func() bool { return count() == 0 })
	o.patch(t, klusterlets, "", o.name, `{"spec":`+gate("Enable")+`}`)
	await(t, func() bool { return count() == 3 })
	o.remove(t, klusterlets, "", o.name)
	await(t, func() bool {
		return o.live(t, klusterlets, "", o.name) == nil && o.live(t, namespaces, "", o.namespace) == nil
	})
}

// testSwitch: the other mode's Deployments go once the new ones are available.
func testSwitch(t *testing.T, o *operated) {
	o.create(t, `{"deployOption":{"mode":"Singleton"}}`)
	o.run(t, "-agent")
	require.Nil(t, o.live(t, accounts, o.namespace, o.name+"-registration-sa"))
	o.awaitCondition(t, operatorv1.ConditionAvailable, metav1.ConditionTrue, operatorv1.ReasonKlusterletAvailable)
	o.setSecret(t, operatorv1.SecretHubKubeconfig, map[string][]byte{"kubeconfig": o.h.master(t), "cluster-name": []byte(o.name)})
	o.patch(t, klusterlets, "", o.name, `{"spec":{"deployOption":{"mode":"Default"}}}`)
	o.run(t, "-registration-agent")
	require.NotNil(t, o.deployment(t, "-agent"), "works are not applied yet")
	o.run(t, "-work-agent")
	await(t, func() bool { return o.deployment(t, "-agent") == nil })
	o.patch(t, klusterlets, "", o.name, `{"spec":{"deployOption":{"mode":"Singleton"}}}`)
	o.run(t, "-agent")
	await(t, func() bool {
		return o.deployment(t, "-work-agent") == nil && o.deployment(t, "-registration-agent") == nil
	})
}

// testMoves: the secrets follow the namespace, and the old one goes once the new agent works.
func testMoves(t *testing.T, o *operated) {
	o.create(t, `{"deployOption":{"mode":"Singleton"}}`)
	o.run(t, "-agent")
	o.setSecret(t, operatorv1.SecretBootstrapHubKubeconfig, map[string][]byte{"kubeconfig": []byte("b")})
	o.setSecret(t, operatorv1.SecretHubKubeconfig, map[string][]byte{"kubeconfig": []byte("k"), "cluster-name": []byte(o.name)})
	o.awaitCondition(t, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, "BootstrapSecretError,HubKubeConfigError")
	old := *o
	o.namespace = "open-cluster-management-moved"
	o.patch(t, klusterlets, "", o.name, `{"spec":{"namespace":"open-cluster-management-moved"}}`)
	o.awaitDeployment(t, "-agent", exists)
	require.NotNil(t, old.deployment(t, "-agent"), "the old agent works until the new one does")
	moved := o.secretIn(t.Context(), o.namespace, operatorv1.SecretHubKubeconfig)
	require.Equal(t, map[string][]byte{"kubeconfig": []byte("k"), "cluster-name": []byte(o.name)}, moved)
	o.run(t, "-agent")
	await(t, func() bool { return o.live(t, namespaces, "", old.namespace) == nil })
	require.Equal(t, map[string][]byte{"kubeconfig": []byte("b")}, o.secretIn(t.Context(), o.namespace, operatorv1.SecretBootstrapHubKubeconfig))
	require.NotNil(t, o.live(t, namespaces, "", operatorv1.NamespaceAgentAddOn))
}

// testWithoutName: without a name in the spec, works wait for the one that the agent gets.
func testWithoutName(t *testing.T, o *operated) {
	o.create(t, `{"clusterName":null}`)
	d := o.awaitDeployment(t, "-registration-agent", exists)
	require.Contains(t, d.Spec.Template.Spec.Containers[0].Args, "--spoke-cluster-name=")
	o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed)
	require.Nil(t, o.deployment(t, "-work-agent"))
	o.setSecret(t, operatorv1.SecretHubKubeconfig, map[string][]byte{"cluster-name": []byte("chosen")})
	d = o.awaitDeployment(t, "-work-agent", exists)
	require.Contains(t, d.Spec.Template.Spec.Containers[0].Args, "--spoke-cluster-name=chosen")
	o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied)
}

// testRefused: a spec that cannot work ends nothing that runs.
func testRefused(t *testing.T, o *operated) {
	o.create(t, `{"deployOption":{"mode":"Singleton"}}`)
	uid := o.awaitDeployment(t, "-agent", exists).UID
	o.patch(t, klusterlets, "", o.name, `{"spec":{"registrationConfiguration":{"clientCertExpirationSeconds":10}}}`)
	c := o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed)
	require.Contains(t, c.Message, "3600")
	require.Equal(t, uid, o.deployment(t, "-agent").UID)
	o.patch(t, klusterlets, "", o.name, `{"spec":{"registrationConfiguration":{"clientCertExpirationSeconds":null,"registrationDriver":{"authType":"grpc"}}}}`)
	c = o.awaitCondition(t, "SpecSupported", metav1.ConditionFalse, "NotSupported")
	require.Contains(t, c.Message, "grpc")
	rival := newOperated(o.spoke, o.h, "rival")
	rival.create(t, `{"namespace":"`+o.namespace+`"}`)
	c = rival.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed)
	require.Contains(t, c.Message, "klusterlet/"+o.name)
	rival.remove(t, klusterlets, "", rival.name)
	await(t, func() bool { return rival.live(t, klusterlets, "", rival.name) == nil })
	require.Nil(t, o.live(t, namespaces, "", o.namespace).GetDeletionTimestamp(), "the namespace is another's")
	require.Equal(t, uid, o.deployment(t, "-agent").UID)
	o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied)
}

// installItself applies a Deployment that runs a process of its own for the Klusterlet. It is there
// before the operator is, which watches Klusterlets apart from Deployments.
func installItself(t *testing.T, o *operated) {
	t.Helper()
	apply(t, o.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": o.namespace},
	}})
	apply(t, o.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": o.namespace, "name": "whatever", "labels": map[string]any{operatorv1.LabelCreatedByKlusterlet: o.name}},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"x": "y"}}, "template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"x": "y"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i", "args": []any{"run", "--klusterlet=" + o.name}}}},
		}},
	}})
}

// testServesItself: a Klusterlet with a process of its own is left alone, until that is gone.
func testServesItself(t *testing.T, o *operated) {
	o.create(t, `{"deployOption":{"mode":"Singleton"}}`)
	never(t, time.Second, func() bool {
		return len(o.live(t, klusterlets, "", o.name).GetFinalizers()) > 0 || o.deployment(t, "-agent") != nil
	}, "a Klusterlet that serves itself is touched")
	o.remove(t, deployments, o.namespace, "whatever")
	o.awaitDeployment(t, "-agent", exists)
}

// testPullSecrets: the image pull secret is where pods need it, and nobody else's is touched.
func testPullSecrets(t *testing.T, o *operated) {
	o.create(t, `{"deployOption":{"mode":"Singleton"}}`)
	d := o.awaitDeployment(t, "-agent", exists)
	require.Empty(t, d.Spec.Template.Spec.ImagePullSecrets)
	for _, name := range []string{"pull-labelled", "pull-foreign"} {
		apply(t, o.client, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": name, "labels": map[string]any{operatorv1.LabelAddOnNamespace: "true"},
		}}})
	}
	(&operated{spoke: o.spoke, namespace: "pull-foreign"}).setSecret(t, operatorv1.SecretImagePull, map[string][]byte{"mine": []byte("x")})
	source := &operated{spoke: o.spoke, namespace: operatorv1.NamespaceOperator}
	source.setSecret(t, operatorv1.SecretImagePull, map[string][]byte{"a": []byte("1")})
	copies := []string{o.namespace, operatorv1.NamespaceAgentAddOn, "pull-labelled"}
	for _, name := range copies {
		await(t, func() bool { return string(o.secretIn(t.Context(), name, operatorv1.SecretImagePull)["a"]) == "1" }, "the secret is in %s", name)
	}
	o.awaitDeployment(t, "-agent", func(d *appsv1.Deployment) bool {
		return slices.Equal(d.Spec.Template.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: operatorv1.SecretImagePull}})
	})
	testLimits(t, o)
	o.remove(t, secrets, operatorv1.NamespaceOperator, operatorv1.SecretImagePull)
	for _, name := range copies {
		await(t, func() bool { return o.secretIn(t.Context(), name, operatorv1.SecretImagePull) == nil }, "the secret is gone from %s", name)
	}
	require.Equal(t, map[string][]byte{"mine": []byte("x")}, o.secretIn(t.Context(), "pull-foreign", operatorv1.SecretImagePull))
}

// testLimits: the ConfigMap beside the operator limits the connections of agents, and add-ons find a
// copy where they run.
func testLimits(t *testing.T, o *operated) {
	t.Helper()
	const name = "ocm-tls-profile"
	write := func(namespace, version string) {
		apply(t, o.client, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name}, "data": map[string]any{"minTLSVersion": version},
		}})
	}
	flag := func(want string) func(*appsv1.Deployment) bool {
		return func(d *appsv1.Deployment) bool {
			args := d.Spec.Template.Spec.Containers[0].Args
			i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--tls-min-version") })
			return want == "" && i < 0 || want != "" && i >= 0 && args[i] == "--tls-min-version="+want
		}
	}
	said := func(namespace string) string {
		u := o.live(t, configmaps, namespace, name)
		if u == nil {
			return ""
		}
		version, _, _ := unstructured.NestedString(u.Object, "data", "minTLSVersion")
		return version
	}
	write("pull-foreign", "mine")
	for _, version := range []string{"VersionTLS13", "VersionTLS12"} {
		write(operatorv1.NamespaceOperator, version)
		o.awaitDeployment(t, "-agent", flag(version))
		for _, namespace := range []string{operatorv1.NamespaceAgentAddOn, "pull-labelled"} {
			await(t, func() bool { return said(namespace) == version }, "%s in %s: %q", version, namespace, func() any { return said(namespace) })
		}
	}
	require.Empty(t, said("default"), "nobody asked for it there")
	write(operatorv1.NamespaceOperator, "1.4")
	c := o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed)
	require.Contains(t, c.Message, `TLS version "1.4"`)
	require.True(t, flag("VersionTLS12")(o.deployment(t, "-agent")), "what runs stays as it is")
	o.remove(t, configmaps, operatorv1.NamespaceOperator, name)
	o.awaitDeployment(t, "-agent", flag(""))
	await(t, func() bool { return said(operatorv1.NamespaceAgentAddOn)+said("pull-labelled") == "" }, "the copies are gone")
	require.Equal(t, "mine", said("pull-foreign"))
}

// start runs the process of a Deployment as its pod would: with its arguments, its account and the
// secrets that it mounts.
func (o *operated) start(t *testing.T, suffix string) *agent {
	t.Helper()
	d := o.deployment(t, suffix)
	pod, dir := d.Spec.Template.Spec, t.TempDir()
	for _, v := range pod.Volumes {
		for _, m := range pod.Containers[0].VolumeMounts {
			if m.Name == v.Name {
				mount(t, dir, strings.TrimPrefix(m.MountPath, "/"), o.secretIn(t.Context(), o.namespace, v.Secret.SecretName))
			}
		}
	}
	return o.startIn(t, o.namespace, pod.ServiceAccountName, dir, pod.Containers[0].Args...)
}

// testJoins: the processes of the Deployments join the hub and apply works.
func testJoins(t *testing.T, o *operated) {
	o.create(t, `{}`)
	await(t, func() bool { return o.live(t, namespaces, "", o.namespace) != nil })
	o.setSecret(t, operatorv1.SecretBootstrapHubKubeconfig, map[string][]byte{"kubeconfig": o.h.bootstrap(t)})
	o.awaitDeployment(t, "-registration-agent", exists)
	o.awaitCondition(t, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigSecretMissing")
	o.start(t, "-registration-agent")
	o.h.join(t, o.name)
	o.awaitDeployment(t, "-work-agent", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 1 })
	o.awaitCondition(t, operatorv1.ConditionHubConnectionDegraded, metav1.ConditionFalse, operatorv1.ReasonHubConnectionFunctional)
	o.start(t, "-work-agent")
	o.h.deliver(t, o.name, "operated")
	await(t, func() bool { return o.live(t, configmaps, "default", "operated-1") != nil })
}

// testDeletedTogether: Klusterlets that are deleted at the same time leave nothing behind.
func testDeletedTogether(t *testing.T, s, managed *spoke) {
	list, err := s.client.Resource(klusterlets).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Greater(t, len(list.Items), 3)
	require.NoError(t, s.client.Resource(klusterlets).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	s.awaitGone(t)
	o := &operated{spoke: s}
	require.Nil(t, o.live(t, namespaces, "", operatorv1.NamespaceAgentAddOn))
	there := &operated{spoke: managed}
	for _, name := range []string{"hosted-refused", "hosted-parts", "hosted-stays"} {
		await(t, func() bool { return there.live(t, namespaces, "", "open-cluster-management-"+name) == nil })
	}
	require.NotNil(t, o.live(t, definitions, "", "klusterlets.operator.open-cluster-management.io"), "the operator needs it")
}

// TestAnAgentRunsThoseOfOtherKlusterlets: the process of the compact layout serves its own
// Klusterlet in itself and makes one Deployment of every other agent, unless an operator does.
func TestAnAgentRunsThoseOfOtherKlusterlets(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "others", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	o := newOperated(s, h, "second")
	o.create(t, `{}`)
	d := o.awaitDeployment(t, "-agent", exists)
	require.Equal(t, "agent", d.Spec.Template.Spec.Containers[0].Args[0])
	require.Equal(t, "ghcr.io/kubectl-ocm/ocm-agent:test", d.Spec.Template.Spec.Containers[0].Image, "the image of the process itself")
	o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied)
	require.Nil(t, o.deployment(t, "-registration-agent"))
	testPolicies(t, newOperated(s, h, "guarded"))

	objects, err := operator.Objects("registry.example/ocm-agent:test")
	require.NoError(t, err)
	for _, u := range objects {
		if u.GetKind() == "Namespace" || u.GetKind() == "Deployment" {
			apply(t, s.client, u)
		}
	}
	// The agent sees the operator before the change that follows it.
	o.patch(t, deployments, operatorv1.NamespaceOperator, "klusterlet", `{"spec":{"replicas":0}}`)
	never(t, time.Second, func() bool { return o.deployment(t, "-agent") == nil }, "the operator serves it now")
	o.patch(t, deployments, o.namespace, d.Name, `{"spec":{"replicas":0}}`)
	never(t, time.Second, func() bool { return *o.deployment(t, "-agent").Spec.Replicas == 1 }, "the agent leaves it to the operator")
	o.remove(t, deployments, operatorv1.NamespaceOperator, "klusterlet")
	o.awaitDeployment(t, "-agent", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 1 })

	o.remove(t, klusterlets, "", o.name)
	await(t, func() bool {
		return o.live(t, klusterlets, "", o.name) == nil && o.live(t, namespaces, "", o.namespace) == nil
	})
	require.NotNil(t, o.live(t, namespaces, "", operatorv1.NamespaceAgentAddOn))
	require.NotNil(t, o.live(t, namespaces, "", operatorv1.NamespaceAgent))
	require.True(t, a.running())
}

// TestAnAgentWithNarrowRightsSaysThatItCannotRunOthers: it must not get back what it was not given.
func TestAnAgentWithNarrowRightsSaysThatItCannotRunOthers(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "narrow", BootstrapKubeconfig: h.bootstrap(t), NarrowRights: true})
	s.start(t)
	o := newOperated(s, h, "second")
	o.create(t, `{}`)
	c := o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed)
	require.Contains(t, c.Message, "forbidden")
	require.Nil(t, o.deployment(t, "-agent"))
}
