// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

const (
	hubSpace      = "open-cluster-management-hub"
	operatorSpace = "open-cluster-management"
	ocmImages     = "quay.io/open-cluster-management/"
	madeByLabel   = "open-cluster-management.io/created-by-clustermanager"
	versionMark   = "operator.open-cluster-management.io/version"
)

var (
	validatingHooks = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	mutatingHooks   = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	roleKind        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	roleBinds       = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	accounts        = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	hubServices     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	policies        = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
)

// otherHubImages are the images of OCM 1.3's hub, run by a stand-in.
func otherHubImages(t *testing.T) map[string]string {
	t.Helper()
	program := harness.Program(t, "test/integration/fleet/otherhub")
	out := map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")}
	for _, image := range []string{"registration-operator", "registration", "work", "placement", "addon-manager"} {
		out[image] = program
	}
	return out
}

// handHubOver makes a hub of ours look like one of OCM 1.3 in mode Default: the clusters, works
// and certificates stay, and what runs it is replaced by the objects of the contract.
func handHubOver(t *testing.T, hub *harness.Cluster) {
	t.Helper()
	client := hub.Dynamic(t)
	foreground := metav1.DeletePropagationForeground
	require.NoError(t, client.Resource(deployments).Namespace(operatorSpace).Delete(t.Context(), "cluster-manager",
		metav1.DeleteOptions{PropagationPolicy: &foreground}))
	gone(t, hub, deployments, operatorSpace, "cluster-manager")
	dropOurs(t, hub)
	bundle := otherCertificates(t, hub)
	for _, u := range otherObjects() {
		_, err := client.Resource(otherResource(u)).Namespace(u.GetNamespace()).
			Create(t.Context(), u, metav1.CreateOptions{FieldManager: "registration-operator"})
		require.NoError(t, err, u.GetName())
	}
	otherAdmission(t, hub, bundle)
	patched(t, hub, managers, "", "cluster-manager", `{"metadata":{"labels":{"`+madeByLabel+`":null}},"spec":{"workImagePullSpec":"`+ocmImages+`work:v1.3.1",
		"registrationImagePullSpec":"`+ocmImages+`registration:v1.3.1","workConfiguration":{"featureGates":null}}}`)
	cm, err := client.Resource(managers).Get(t.Context(), "cluster-manager", metav1.GetOptions{})
	require.NoError(t, err)
	cm.Object["status"] = map[string]any{"observedGeneration": cm.GetGeneration(), "conditions": []any{
		condition("Applied", "True", "ClusterManagerApplied"), condition("Progressing", "False", "ClusterManagerUpToDate"),
		condition("HubRegistrationDegraded", "False", "RegistrationFunctional"), condition("HubPlacementDegraded", "False", "PlacementFunctional"),
	}}
	_, err = client.Resource(managers).UpdateStatus(t.Context(), cm, metav1.UpdateOptions{})
	require.NoError(t, err)
	for namespace, n := range map[string]int{operatorSpace: 1, hubSpace: 7} {
		eventually(t, func() bool {
			list, err := client.Resource(deployments).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
			return err == nil && len(list.Items) == n && !slices.ContainsFunc(list.Items, func(d unstructured.Unstructured) bool {
				ready, _, _ := unstructured.NestedInt64(d.Object, "status", "availableReplicas")
				return ready != 1
			})
		}, patience, 100*time.Millisecond, namespace)
	}
	eventually(t, func() bool { return admitted(t.Context(), hub.Dynamic(t)) == nil }, patience, 100*time.Millisecond)
}

func condition(kind, status, reason string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-11-01T00:00:00Z"}
}

func gone(t *testing.T, c *harness.Cluster, kind schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	eventually(t, func() bool {
		_, err := c.Dynamic(t).Resource(kind).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, 100*time.Millisecond)
}

// dropOurs deletes what our installer applied and OCM's hub does not have.
func dropOurs(t *testing.T, hub *harness.Cluster) {
	t.Helper()
	client := hub.Dynamic(t)
	for _, kind := range []schema.GroupVersionResource{
		validatingHooks, mutatingHooks, clusterRoles, clusterRoleBinds, roleKind, roleBinds, accounts, hubServices, policies, secrets, configMaps,
	} {
		list, err := client.Resource(kind).List(t.Context(), metav1.ListOptions{LabelSelector: madeByLabel + "=cluster-manager"})
		require.NoError(t, err)
		for _, u := range list.Items {
			if u.GetName() == "agent-registration-bootstrap" {
				continue
			}
			require.NoError(t, client.Resource(kind).Namespace(u.GetNamespace()).Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}))
		}
	}
	lease := client.Resource(leaseResource).Namespace(operatorSpace)
	require.NoError(t, lease.Delete(t.Context(), "clustermanager-lock", metav1.DeleteOptions{}))
	for _, name := range []string{operatorSpace, hubSpace} {
		patched(t, hub, namespaces, "", name, `{"metadata":{"labels":{"`+madeByLabel+`":null}}}`)
	}
	patched(t, hub, accounts, operatorSpace, "agent-registration-bootstrap", `{"metadata":{"labels":{"`+madeByLabel+`":null}}}`)
}

// otherCertificates stores certificates for the names under which OCM's webhooks are called.
func otherCertificates(t *testing.T, hub *harness.Cluster) []byte {
	t.Helper()
	name := func(part string) string { return "cluster-manager-" + part + "-webhook." + hubSpace + ".svc" }
	parts := []string{"registration", "work", "addon"}
	set, _, err := certs.DefaultPolicy().Ensure(certs.Set{}, []string{name(parts[0]), name(parts[1]), name(parts[2])}, time.Now())
	require.NoError(t, err)
	all := []*unstructured.Unstructured{
		tlsOf("signer-secret", set.Signer),
		labelledOf(object("v1", "ConfigMap", hubSpace, "ca-bundle-configmap", map[string]any{"data": map[string]any{"ca-bundle.crt": string(set.Bundle)}})),
	}
	for _, part := range parts {
		all = append(all, tlsOf(part+"-webhook-serving-cert", set.Leaves[name(part)]))
	}
	for _, u := range all {
		_, err := hub.Dynamic(t).Resource(otherResource(u)).Namespace(hubSpace).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return set.Bundle
}

func tlsOf(name string, pair certs.Pair) *unstructured.Unstructured {
	encode := base64.StdEncoding.EncodeToString
	return labelledOf(object("v1", "Secret", hubSpace, name, map[string]any{"type": "kubernetes.io/tls",
		"data": map[string]any{"tls.crt": encode(pair.Cert), "tls.key": encode(pair.Key)}}))
}

func labelledOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetLabels(map[string]string{madeByLabel: "cluster-manager"})
	return u
}

func otherResource(u *unstructured.Unstructured) schema.GroupVersionResource {
	return map[string]schema.GroupVersionResource{"Deployment": deployments, "ServiceAccount": accounts, "Service": hubServices, "ClusterRole": clusterRoles,
		"ClusterRoleBinding": clusterRoleBinds, "Secret": secrets, "ConfigMap": configMaps}[u.GetKind()]
}

// otherObjects are the operator and what it makes in namespace open-cluster-management-hub.
func otherObjects() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	role := func(name string, rules ...any) {
		out = append(out, object("rbac.authorization.k8s.io/v1", "ClusterRole", "", name, map[string]any{"rules": rules}))
	}
	bind := func(name, roleName, namespace, account string) {
		out = append(out, object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", name, map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": roleName},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": account}},
		}))
	}
	rule := func(group, resource string, verbs ...any) any {
		return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}
	}
	out = append(out, object("v1", "ServiceAccount", operatorSpace, "cluster-manager", nil))
	role("cluster-manager", rule("operator.open-cluster-management.io", "clustermanagers", "get", "list", "watch", "update", "patch"),
		rule("apps", "deployments", "*"), rule("rbac.authorization.k8s.io", "clusterroles", "*", "escalate", "bind"))
	bind("cluster-manager", "cluster-manager", operatorSpace, "cluster-manager")
	role("open-cluster-management:bootstrap", rule("", "configmaps", "get"),
		rule("certificates.k8s.io", "certificatesigningrequests", "create", "get", "list", "watch"),
		rule("cluster.open-cluster-management.io", "managedclusters", "get", "create", "list", "watch"),
		rule("cluster.open-cluster-management.io", "managedclustersets/join", "create"))
	bind("open-cluster-management:bootstrap:agent-registration", "open-cluster-management:bootstrap", operatorSpace, "agent-registration-bootstrap")

	made := len(out)
	for _, c := range []struct{ name, account string }{
		{"registration:controller", "registration-controller-sa"}, {"registration:webhook", "registration-webhook-sa"},
		{"work:webhook", "work-webhook-sa"}, {"placement:controller", "placement-controller-sa"}, {"work:controller", "work-controller-sa"},
		{"addon-manager:controller", "addon-manager-controller-sa"}, {"", "addon-webhook-sa"},
	} {
		out = append(out, object("v1", "ServiceAccount", hubSpace, c.account, nil))
		if name := "open-cluster-management:cluster-manager-" + c.name; c.name != "" {
			role(name, rule("cluster.open-cluster-management.io", "managedclusters", "get", "list", "watch"))
			bind(name, name, hubSpace, c.account)
		}
	}
	role("open-cluster-management:cluster-manager-work-executor-admin:webhook", rule("work.open-cluster-management.io", "manifestworks", "execute-as"))
	bind("open-cluster-management:cluster-manager-addon-manager-work-executor:controller",
		"open-cluster-management:cluster-manager-work-executor-admin:webhook", hubSpace, "addon-manager-controller-sa")
	for _, part := range []string{"registration-webhook", "work-webhook", "addon-webhook", "placement"} {
		out = append(out, object("v1", "Service", hubSpace, "cluster-manager-"+part, map[string]any{"spec": map[string]any{
			"selector": map[string]any{"app": "cluster-manager-" + part},
			"ports":    []any{map[string]any{"name": "webhook", "port": int64(9443), "targetPort": int64(9443)}},
		}}))
	}
	for _, d := range []struct{ name, image, verb, account string }{
		{"registration-controller", "registration", "controller", "registration-controller-sa"},
		{"placement-controller", "placement", "controller", "placement-controller-sa"},
		{"addon-manager-controller", "addon-manager", "manager", "addon-manager-controller-sa"},
		{"work-controller", "work", "manager", "work-controller-sa"},
		{"registration-webhook", "registration", "webhook-server", "registration-webhook-sa"},
		{"work-webhook", "work", "webhook-server", "work-webhook-sa"},
		{"addon-webhook", "addon-manager", "webhook-server", "addon-webhook-sa"},
	} {
		out = append(out, otherDeployment(hubSpace, "cluster-manager-"+d.name, d.image, d.verb, d.account))
	}
	for _, u := range out[made:] {
		labelledOf(u)
	}
	return append(out, otherDeployment(operatorSpace, "cluster-manager", "registration-operator", "hub", "cluster-manager"))
}

func otherDeployment(namespace, name, image, verb, account string) *unstructured.Unstructured {
	u := deploymentOf(namespace, name, ocmImages+image+":v1.3.1")
	pod := u.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	pod["serviceAccountName"] = account
	container := pod["containers"].([]any)[0].(map[string]any)
	container["args"] = []any{verb}
	if verb == "webhook-server" {
		secret := strings.TrimPrefix(name, "cluster-manager-") + "-serving-cert"
		pod["volumes"] = []any{map[string]any{"name": "certs", "secret": map[string]any{"secretName": secret}}}
		container["volumeMounts"] = []any{map[string]any{"name": "certs", "mountPath": "/tmp/k8s-webhook-server/serving-certs"}}
		container["ports"] = []any{map[string]any{"containerPort": int64(9443)}}
	}
	return u
}

// otherAdmission points admission and conversion to OCM's webhooks, and marks its definitions.
func otherAdmission(t *testing.T, hub *harness.Cluster, bundle []byte) {
	t.Helper()
	client := hub.Dynamic(t)
	ca := base64.StdEncoding.EncodeToString(bundle)
	for _, h := range []struct{ kind, name, service, group, resource, version string }{
		{"ValidatingWebhookConfiguration", "managedclustervalidators.admission.cluster.open-cluster-management.io", "registration", "cluster",
			"managedclusters", "*"},
		{"MutatingWebhookConfiguration", "managedclustermutators.admission.cluster.open-cluster-management.io", "registration", "cluster",
			"managedclusters", "*"},
		{"ValidatingWebhookConfiguration", "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io", "registration", "cluster",
			"managedclustersetbindings", "v1beta2"},
		{"ValidatingWebhookConfiguration", "manifestworkvalidators.admission.work.open-cluster-management.io", "work", "work", "manifestworks", "*"},
	} {
		u := labelledOf(object("admissionregistration.k8s.io/v1", h.kind, "", h.name, map[string]any{"webhooks": []any{map[string]any{
			"name": h.name, "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": int64(10), "admissionReviewVersions": []any{"v1beta1", "v1"},
			"clientConfig": map[string]any{"caBundle": ca, "service": map[string]any{"namespace": hubSpace, "port": int64(9443),
				"name": "cluster-manager-" + h.service + "-webhook", "path": "/" + h.resource}},
			"rules": []any{map[string]any{"operations": []any{"CREATE", "UPDATE"}, "apiGroups": []any{h.group + ".open-cluster-management.io"},
				"apiVersions": []any{h.version}, "resources": []any{h.resource}}},
		}}}))
		kind := validatingHooks
		if h.kind == "MutatingWebhookConfiguration" {
			kind = mutatingHooks
		}
		_, err := client.Resource(kind).Create(t.Context(), u, metav1.CreateOptions{FieldManager: "registration-operator"})
		require.NoError(t, err)
	}
	list, err := client.Resource(definitions).List(t.Context(), metav1.ListOptions{LabelSelector: madeByLabel})
	require.NoError(t, err)
	for _, d := range list.Items {
		spec := map[string]any{}
		if strategy, _, _ := unstructured.NestedString(d.Object, "spec", "conversion", "strategy"); strategy == "Webhook" {
			spec["conversion"] = map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{
				"caBundle": ca, "service": map[string]any{"namespace": hubSpace}}}}
		}
		body, err := json.Marshal(map[string]any{"spec": spec, "metadata": map[string]any{"annotations": map[string]any{
			"registration.open-cluster-management.io/intent": nil, versionMark: "1.3.1"}}})
		require.NoError(t, err)
		_, err = client.Resource(definitions).
			Patch(t.Context(), d.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: "registration-operator"})
		require.NoError(t, err)
	}
}

// contents returns every object of the hub's installation, without what each write changes.
func contents(t *testing.T, hub *harness.Cluster) map[string]string {
	t.Helper()
	return contentsOf(t, hub, hubServices, managers)
}

// contentsOf does the same for any installation, which consists of the usual kinds and more.
func contentsOf(t *testing.T, c *harness.Cluster, more ...schema.GroupVersionResource) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, kind := range append(more,
		namespaces, definitions, validatingHooks, mutatingHooks, clusterRoles, clusterRoleBinds, roleKind, roleBinds, accounts, policies, deployments,
		configMaps,
	) {
		list, err := c.Dynamic(t).Resource(kind).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, u := range list.Items {
			for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
				unstructured.RemoveNestedField(u.Object, "metadata", field)
			}
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
			if len(u.GetAnnotations()) == 0 {
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
			}
			unstructured.RemoveNestedField(u.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(u.Object, "spec", "clusterIPs")
			delete(u.Object, "status")
			raw, err := json.Marshal(u.Object)
			require.NoError(t, err)
			out[fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName())] = string(raw)
		}
	}
	return out
}
