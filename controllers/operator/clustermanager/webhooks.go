// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// hook is one webhook configuration; its name is also that of its webhook.
type hook struct {
	name, service, path       string
	group, version, resources string
	mutating                  bool
	// deletions makes the webhook check deletions instead of creations and updates, of
	// objects that have the label labelled.
	deletions bool
	labelled  string
	// conditions must all hold for the webhook to be called.
	conditions []admissionregistrationv1.MatchCondition
	// failure is the failure policy, for when the webhook does not answer.
	failure admissionregistrationv1.FailurePolicyType
}

// hooks are the four webhooks of the API's contract, and further ones for cluster sets,
// replica sets of works, rights on clusters, placements, add-on templates, what agents write into a status, and
// the deletion of cluster namespaces. None of them is called for a lease, a certificate
// request or any other deletion: while the hub's process is down, clusters still report,
// renew certificates and can be removed. The failure policy of the others depends on what the
// webhook protects:
//
//   - clusters, mutating: Fail. Automatic acceptance trusts the stamped creator,
//     and adoption of a namespace the stamped UID.
//   - clusters, validating: Fail. Otherwise, while the hub is down, anyone could accept
//     a cluster, move it between sets, or change the cluster of another agent.
//   - bindings: Fail. A binding gives a namespace the clusters of a set.
//   - works: Fail. An unchecked work could run as another user's account.
//   - replica sets of works: Fail. The hub creates the works with its own rights, so
//     there is no later check whether the author may use the executor.
//   - cluster permissions: Fail. The hub sends the rights with its own, so there is no later
//     check whether the author may give them.
//   - cluster sets: Ignore. The rules catch mistakes early; the loops cope with a
//     malformed set, and the rules protect nothing.
//   - placements: Ignore, for the same reason: an invalid one keeps its decisions.
//   - templates: Fail. The hub binds roles and signs for them with its own rights.
//   - status of add-ons: Fail. It names the configurations that a cluster gets.
//   - hosting clusters of add-ons: Fail. The hub sends works there with its own rights. Only an
//     add-on that names another one than before calls it.
//   - namespaces of clusters, deletion: Ignore. The rule prevents mistakes of users, and
//     must not block the deletion of a namespace forever.
//   - status of clusters and works: Ignore. Its size is usually limited, no decision
//     relies on more than agents may write, and a hub that is down must not block them.
var hooks = []hook{
	{
		name: "managedclustermutators.admission.cluster.open-cluster-management.io", service: operatorv1.ServiceRegistrationWebhook,
		path: webhook.PathMutateCluster, group: clusterv1.GroupName, version: "*", resources: "managedclusters", mutating: true,
		failure: admissionregistrationv1.Fail,
	},
	{
		name: "managedclustervalidators.admission.cluster.open-cluster-management.io", service: operatorv1.ServiceRegistrationWebhook,
		path: webhook.PathValidateCluster, group: clusterv1.GroupName, version: "*", resources: "managedclusters",
		failure: admissionregistrationv1.Fail,
	},
	{
		name: "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io", service: operatorv1.ServiceRegistrationWebhook,
		path: webhook.PathValidateBinding, group: clusterv1.GroupName, version: "v1beta2", resources: "managedclustersetbindings",
		failure: admissionregistrationv1.Fail,
	},
	{
		name: "managedclustersetvalidators.admission.cluster.open-cluster-management.io", service: operatorv1.ServiceRegistrationWebhook,
		path: webhook.PathValidateSet, group: clusterv1.GroupName, version: "v1beta2", resources: "managedclustersets",
		failure: admissionregistrationv1.Ignore,
	},
	{
		name: "placementvalidators.admission.cluster.open-cluster-management.io", service: operatorv1.ServiceRegistrationWebhook,
		path: webhook.PathValidatePlacement, group: clusterv1.GroupName, version: "v1beta1", resources: "placements",
		failure: admissionregistrationv1.Ignore,
	},
	{
		name: "manifestworkvalidators.admission.work.open-cluster-management.io", service: operatorv1.ServiceWorkWebhook,
		path: webhook.PathValidateWork, group: workv1.GroupName, version: "*", resources: "manifestworks",
		failure: admissionregistrationv1.Fail,
	},
	{
		name: "manifestworkreplicasetvalidators.admission.work.open-cluster-management.io", service: operatorv1.ServiceWorkWebhook,
		path: webhook.PathValidateWorkSet, group: workv1.GroupName, version: "v1alpha1", resources: "manifestworkreplicasets",
		failure: admissionregistrationv1.Fail,
	},
	{
		name: "clusterpermissionvalidators.admission.rbac.open-cluster-management.io", service: operatorv1.ServiceWorkWebhook,
		path: webhook.PathValidatePermission, group: permissionv1alpha1.GroupName, version: "v1alpha1",
		resources: permissionv1alpha1.ResourceClusterPermissions, failure: admissionregistrationv1.Fail,
	},
	{
		name: "addontemplatevalidators.admission.addon.open-cluster-management.io", service: operatorv1.ServiceAddOnWebhook,
		path: webhook.PathValidateTemplate, group: addonv1alpha1.GroupName, version: "v1alpha1", resources: addonv1alpha1.ResourceTemplate,
		failure: admissionregistrationv1.Fail,
	},
	{
		name: "managedclusteraddonstatusvalidators.admission.addon.open-cluster-management.io", service: operatorv1.ServiceAddOnWebhook,
		path: webhook.PathAddOnStatus, group: addonv1alpha1.GroupName, version: "v1alpha1", resources: "managedclusteraddons/status",
		failure: admissionregistrationv1.Fail, conditions: byAgents(agents + " || " + tokenAgent),
	},
	{
		name: "managedclusteraddonvalidators.admission.addon.open-cluster-management.io", service: operatorv1.ServiceAddOnWebhook,
		path: webhook.PathValidateAddOn, group: addonv1alpha1.GroupName, version: "v1alpha1", resources: "managedclusteraddons",
		failure: admissionregistrationv1.Fail, conditions: []admissionregistrationv1.MatchCondition{{Name: "hosted", Expression: newHost}},
	},
	{
		name: "managedclusterstatusvalidators.admission.cluster.open-cluster-management.io", service: operatorv1.ServiceRegistrationWebhook,
		path: webhook.PathClusterStatus, group: clusterv1.GroupName, version: "v1", resources: "managedclusters/status",
		failure: admissionregistrationv1.Ignore, conditions: byAgents(agents),
	},
	{
		name: "manifestworkstatusvalidators.admission.work.open-cluster-management.io", service: operatorv1.ServiceWorkWebhook,
		path: webhook.PathWorkStatus, group: workv1.GroupName, version: "v1", resources: "manifestworks/status",
		failure: admissionregistrationv1.Ignore, conditions: byAgents(agents),
	},
	{
		name: "clusternamespacevalidators.admission.cluster.open-cluster-management.io", service: operatorv1.ServiceRegistrationWebhook,
		path: webhook.PathDeleteNamespace, version: "v1", resources: "namespaces", deletions: true, labelled: clusterv1.LabelClusterName,
		failure: admissionregistrationv1.Ignore,
	},
}

// agents and tokenAgent match the requests of agents. Requests of the hub, of users and of
// controllers do not call the webhook, so that a hub that is down blocks none of them. The
// webhook itself finds out which agent made the request.
const (
	agents     = `request.userInfo.groups.exists(g, g.startsWith("` + clusterv1.UserPrefix + `") || g.startsWith("` + clusterv1.GroupPrefixEKS + `"))`
	tokenAgent = `request.userInfo.username == "system:serviceaccount:" + request.namespace + ":" + request.name + "` + addonv1alpha1.ServiceAccountSuffix + `"`
)

// newHost matches add-ons that name a hosting cluster which they did not name before.
const newHost = `object.metadata.?annotations[?"` + addonv1alpha1.AnnotationHostingClusterName + `"].orValue("") != "" && ` +
	`(oldObject == null || oldObject.metadata.?annotations[?"` + addonv1alpha1.AnnotationHostingClusterName + `"].orValue("") != ` +
	`object.metadata.annotations["` + addonv1alpha1.AnnotationHostingClusterName + `"])`

func byAgents(expression string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{Name: "agents", Expression: expression}}
}

// hookTimeout is the timeout in seconds that the API's contract specifies.
const hookTimeout = 10

func inventory(name string) map[string]string {
	return map[string]string{operatorv1.LabelCreatedByClusterManager: name}
}

// object returns the webhook configuration, with bundle as the CA bundle of its client.
func (h hook) object(at place, bundle []byte) reconcile.Object {
	fail, none, timeout := h.failure, admissionregistrationv1.SideEffectClassNone, int32(hookTimeout)
	all, port := admissionregistrationv1.AllScopes, int32(hub.WebhookPort)
	client := admissionregistrationv1.WebhookClientConfig{CABundle: bundle, URL: at.url(h.service, h.path)}
	if client.URL == nil {
		client.Service = &admissionregistrationv1.ServiceReference{Namespace: at.namespace, Name: h.service, Path: &h.path, Port: &port}
	}
	operations := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	var selector *metav1.LabelSelector
	if h.deletions {
		operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}
		selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: h.labelled, Operator: metav1.LabelSelectorOpExists}}}
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{h.group}, APIVersions: []string{h.version}, Resources: []string{h.resources}, Scope: &all,
		},
	}}
	versions := []string{"v1", "v1beta1"}
	meta := metav1.ObjectMeta{Name: h.name, Labels: inventory(hub.Name)}
	group := admissionregistrationv1.SchemeGroupVersion.String()
	if h.mutating {
		return &admissionregistrationv1.MutatingWebhookConfiguration{
			TypeMeta: metav1.TypeMeta{APIVersion: group, Kind: "MutatingWebhookConfiguration"}, ObjectMeta: meta,
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: h.name, ClientConfig: client, Rules: rules, FailurePolicy: &fail, SideEffects: &none,
				TimeoutSeconds: &timeout, AdmissionReviewVersions: versions, MatchConditions: h.conditions,
			}},
		}
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: group, Kind: "ValidatingWebhookConfiguration"}, ObjectMeta: meta,
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: h.name, ClientConfig: client, Rules: rules, FailurePolicy: &fail, SideEffects: &none,
			TimeoutSeconds: &timeout, AdmissionReviewVersions: versions, MatchConditions: h.conditions, ObjectSelector: selector,
		}},
	}
}
