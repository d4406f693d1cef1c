// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

func objects(t *testing.T, o hub.Options) []*unstructured.Unstructured {
	t.Helper()
	out, err := hub.Objects(o)
	require.NoError(t, err)
	return out
}

func find[T any](t *testing.T, list []*unstructured.Unstructured, kind, namespace, name string) *T {
	t.Helper()
	for _, u := range list {
		if u.GetKind() == kind && u.GetNamespace() == namespace && u.GetName() == name {
			o, err := typed.FromUnstructured[T](u)
			require.NoError(t, err)
			return o
		}
	}
	t.Fatalf("there is no %s %s/%s", kind, namespace, name)
	return nil
}

func TestObjectsComeInTheOrderToApplyWithTheirLabel(t *testing.T) {
	var got []string
	for _, u := range objects(t, hub.Options{Version: "v1.2.3"}) {
		require.Equal(t, "cluster-manager", u.GetLabels()[operatorv1.LabelCreatedByClusterManager], u.GetName())
		got = append(got, strings.TrimPrefix(fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName()), " "))
	}
	require.Empty(t, cmp.Diff([]string{
		"Namespace /open-cluster-management",
		"Namespace /open-cluster-management-hub",
		"ServiceAccount open-cluster-management/cluster-manager",
		"ClusterRole /cluster-manager",
		"ClusterRoleBinding /cluster-manager",
		"ClusterRole /cluster-manager-token-driver",
		"ClusterRole /cluster-manager-hosting",
		"Role open-cluster-management/cluster-manager",
		"RoleBinding open-cluster-management/cluster-manager",
		"ClusterRole /cluster-manager-components",
		"RoleBinding open-cluster-management-hub/cluster-manager-components",
		"ClusterRole /cluster-manager-restore",
		"ClusterRoleBinding /cluster-manager-restore",
		"ClusterRole /cluster-manager-importer",
		"ClusterRoleBinding /cluster-manager-importer",
		"ClusterRole /cluster-manager-credentials",
		"ClusterRoleBinding /cluster-manager-credentials",
		"ServiceAccount open-cluster-management-hub/addon-manager-controller-sa",
		"ClusterRole /open-cluster-management:cluster-manager-addon-manager:controller",
		"ClusterRole /open-cluster-management:cluster-manager-addon-manager:agents",
		"ClusterRoleBinding /open-cluster-management:cluster-manager-addon-manager:controller",
		"ClusterRoleBinding /open-cluster-management:cluster-manager-addon-manager:agents",
		"ClusterRole /open-cluster-management:managedclusters:proxy",
		"ClusterRole /open-cluster-management:clusterservices:proxy",
		"ClusterRole /open-cluster-management:managedserviceaccounts:proxy",
		"ClusterRole /open-cluster-management:tunnels:proxy",
		"ClusterRoleBinding /open-cluster-management:tunnels:proxy",
		"ServiceAccount open-cluster-management/agent-registration-bootstrap",
		"ClusterRole /open-cluster-management:bootstrap",
		"ClusterRoleBinding /open-cluster-management:bootstrap:managedcluster",
		"ClusterRoleBinding /open-cluster-management:bootstrap:agent-registration",
		"CustomResourceDefinition /clustermanagers.operator.open-cluster-management.io",
		"Service open-cluster-management/cluster-manager-registration-webhook",
		"Service open-cluster-management/cluster-manager-work-webhook",
		"Service open-cluster-management/cluster-manager-addon-webhook",
		"Service open-cluster-management/cluster-manager-placement",
		"Service open-cluster-management-hub/cluster-manager-placement",
		"Service open-cluster-management/cluster-manager-proxy",
		"NetworkPolicy open-cluster-management/cluster-manager",
		"Deployment open-cluster-management/cluster-manager",
		"ClusterManager /cluster-manager",
	}, got))
}

func TestOptionsShapeTheDeployment(t *testing.T) {
	d := find[appsv1.Deployment](t, objects(t, hub.Options{Version: "v1.2.3", Replicas: 3, ImagePullPolicy: "Never"}), "Deployment", hub.Namespace, hub.Name)
	c := d.Spec.Template.Spec.Containers[0]
	require.Equal(t, "ghcr.io/kubectl-ocm/ocm-hub:v1.2.3", c.Image)
	require.EqualValues(t, "Never", c.ImagePullPolicy)
	require.Equal(t, []string{"run"}, c.Args)
	require.EqualValues(t, 3, *d.Spec.Replicas)
	require.Equal(t, "1.2.3", d.Annotations[operatorv1.AnnotationVersion])
	require.Equal(t, d.Spec.Selector.MatchLabels["app"], d.Spec.Template.Labels["app"])
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	require.EqualValues(t, []string{"ALL"}, []string{string(c.SecurityContext.Capabilities.Drop[0])})
	require.True(t, *d.Spec.Template.Spec.SecurityContext.RunAsNonRoot)
	require.EqualValues(t, 2<<30, c.Resources.Limits.Memory().Value())
	require.Contains(t, c.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "1800MiB"})

	d = find[appsv1.Deployment](t, objects(t, hub.Options{Image: "example.com/hub:1"}), "Deployment", hub.Namespace, hub.Name)
	require.Equal(t, "example.com/hub:1", d.Spec.Template.Spec.Containers[0].Image)
	require.EqualValues(t, 1, *d.Spec.Replicas)
	_, err := hub.Objects(hub.Options{})
	require.Error(t, err)
	_, err = hub.Objects(hub.Options{Version: "v1", Replicas: -1})
	require.Error(t, err)
}

// TestADeclaredPlacementIsThatOfTheOneDeployment, and an operator's is its installer's.
func TestADeclaredPlacementIsThatOfTheOneDeployment(t *testing.T) {
	o := hub.Options{
		Version: "v1",
		Placement: operatorv1.NodePlacement{
			NodeSelector: map[string]string{"role": "infra"}, Tolerations: []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}},
		},
		Resources: &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassBestEffort},
	}
	pod := find[appsv1.Deployment](t, objects(t, o), "Deployment", hub.Namespace, hub.Name).Spec.Template.Spec
	require.Equal(t, o.Placement, operatorv1.NodePlacement{NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations})
	require.Empty(t, pod.Containers[0].Resources)
	o.Layout = hub.LayoutSplit
	pod = find[appsv1.Deployment](t, objects(t, o), "Deployment", hub.Namespace, hub.Name).Spec.Template.Spec
	require.Empty(t, pod.NodeSelector)
	require.NotEmpty(t, pod.Containers[0].Resources)
}

func TestTheClusterManagerEnablesReplicaSets(t *testing.T) {
	cm := find[operatorv1.ClusterManager](t, objects(t, hub.Options{Version: "v1"}), "ClusterManager", "", hub.Name)
	gates := []operatorv1.FeatureGate{{Feature: "ManifestWorkReplicaSet", Mode: operatorv1.FeatureGateModeTypeEnable}}
	require.Equal(t, gates, cm.Spec.WorkConfiguration.FeatureGates)
}

// lines writes rules one a line: "verbs | group/resource | names".
func lines(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				line := fmt.Sprintf("%s %s/%s", strings.Join(r.Verbs, ","), group, resource)
				if len(r.ResourceNames) > 0 {
					line += " [" + strings.Join(r.ResourceNames, " ") + "]"
				}
				out = append(out, line)
			}
		}
	}
	sort.Strings(out)
	return out
}

const definitions = "[addondeploymentconfigs.addon.open-cluster-management.io addonplacementscores.cluster.open-cluster-management.io " +
	"addontemplates.addon.open-cluster-management.io clustermanagementaddons.addon.open-cluster-management.io " +
	"clusterpermissions.rbac.open-cluster-management.io " +
	"managedclusteraddons.addon.open-cluster-management.io managedclusters.cluster.open-cluster-management.io " +
	"managedclustersetbindings.cluster.open-cluster-management.io managedclustersets.cluster.open-cluster-management.io " +
	"manifestworkreplicasets.work.open-cluster-management.io manifestworks.work.open-cluster-management.io " +
	"placementdecisions.cluster.open-cluster-management.io placements.cluster.open-cluster-management.io]"

// componentDeployments are the Deployments of the split layout.
const componentDeployments = "[cluster-manager-addon-manager-controller cluster-manager-addon-webhook cluster-manager-placement-controller " +
	"cluster-manager-registration-controller cluster-manager-registration-webhook cluster-manager-work-controller cluster-manager-work-webhook]"

// addOnManagerRole is the name of the add-on manager's role and its binding.
const addOnManagerRole = "open-cluster-management:cluster-manager-addon-manager:controller"

func TestEveryRightIsPinned(t *testing.T) {
	list := objects(t, hub.Options{Version: "v1"})
	for name, tc := range map[string]struct {
		rules []rbacv1.PolicyRule
		want  []string
	}{
		"of the hub process in the cluster": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", hub.Name).Rules,
			[]string{
				"approve certificates.k8s.io/signers [kubernetes.io/kube-apiserver-client]",
				"create authentication.k8s.io/tokenreviews",
				"create authorization.k8s.io/subjectaccessreviews",
				"create cluster.open-cluster-management.io/managedclustersets/join",
				"create,get,list,watch,delete certificates.k8s.io/certificatesigningrequests",
				"create,list,watch admissionregistration.k8s.io/mutatingwebhookconfigurations",
				"create,list,watch admissionregistration.k8s.io/validatingwebhookconfigurations",
				"create,list,watch apiextensions.k8s.io/customresourcedefinitions",
				"create,list,watch apiregistration.k8s.io/apiservices",
				"create,list,watch coordination.k8s.io/leases",
				"create,patch,update /events",
				"create,patch,update events.k8s.io/events",
				"execute-as work.open-cluster-management.io/manifestworks",
				"get,list,watch /configmaps [extension-apiserver-authentication]",
				"get,list,watch /serviceaccounts",
				"get,list,watch cluster.open-cluster-management.io/addonplacementscores",
				"get,list,watch cluster.open-cluster-management.io/managedclustersetbindings",
				"get,list,watch cluster.open-cluster-management.io/placements",
				"get,list,watch rbac.authorization.k8s.io/roles",
				"get,list,watch,create,patch /namespaces",
				"get,list,watch,create,patch cluster.open-cluster-management.io/managedclustersets",
				"get,list,watch,create,patch,delete addon.open-cluster-management.io/managedclusteraddons",
				"get,list,watch,create,patch,delete cluster.open-cluster-management.io/placementdecisions",
				"get,list,watch,create,patch,delete multicluster.x-k8s.io/clusterprofiles",
				"get,list,watch,create,patch,delete rbac.authorization.k8s.io/clusterrolebindings",
				"get,list,watch,create,patch,delete rbac.authorization.k8s.io/clusterroles",
				"get,list,watch,create,patch,delete rbac.authorization.k8s.io/rolebindings",
				"get,list,watch,create,update,patch,delete work.open-cluster-management.io/manifestworks",
				"get,list,watch,delete authentication.open-cluster-management.io/managedserviceaccounts",
				"get,list,watch,patch operator.open-cluster-management.io/clustermanagers",
				"get,list,watch,patch,delete work.open-cluster-management.io/manifestworkreplicasets",
				"get,list,watch,update,patch,delete cluster.open-cluster-management.io/managedclusters",
				"get,patch,delete admissionregistration.k8s.io/mutatingwebhookconfigurations [managedclustermutators.admission.cluster.open-cluster-management.io]",
				"get,patch,delete admissionregistration.k8s.io/validatingwebhookconfigurations [" +
					"addontemplatevalidators.admission.addon.open-cluster-management.io " +
					"clusternamespacevalidators.admission.cluster.open-cluster-management.io " +
					"clusterpermissionvalidators.admission.rbac.open-cluster-management.io " +
					"managedclusteraddonstatusvalidators.admission.addon.open-cluster-management.io " +
					"managedclusteraddonvalidators.admission.addon.open-cluster-management.io " +
					"managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io " +
					"managedclustersetvalidators.admission.cluster.open-cluster-management.io " +
					"managedclusterstatusvalidators.admission.cluster.open-cluster-management.io " +
					"managedclustervalidators.admission.cluster.open-cluster-management.io " +
					"manifestworkreplicasetvalidators.admission.work.open-cluster-management.io " +
					"manifestworkstatusvalidators.admission.work.open-cluster-management.io " +
					"manifestworkvalidators.admission.work.open-cluster-management.io " +
					"placementvalidators.admission.cluster.open-cluster-management.io]",
				"get,patch,delete apiextensions.k8s.io/customresourcedefinitions " + definitions,
				"get,patch,delete apiregistration.k8s.io/apiservices [v1alpha1.connect.open-cluster-management.io]",
				"get,update,patch coordination.k8s.io/leases [managed-cluster-lease]",
				"list,watch /services [cluster-manager-placement]",
				"list,watch addon.open-cluster-management.io/addondeploymentconfigs",
				"list,watch addon.open-cluster-management.io/addontemplates",
				"list,watch addon.open-cluster-management.io/clustermanagementaddons",
				"list,watch authentication.open-cluster-management.io/managedserviceaccounts",
				"list,watch discovery.k8s.io/endpointslices [kubernetes]",
				"list,watch rbac.open-cluster-management.io/clusterpermissions",
				"patch addon.open-cluster-management.io/clustermanagementaddons/status",
				"patch authentication.open-cluster-management.io/managedserviceaccounts/status",
				"patch cluster.open-cluster-management.io/managedclustersetbindings/status",
				"patch cluster.open-cluster-management.io/managedclustersets/status",
				"patch cluster.open-cluster-management.io/placementdecisions/status",
				"patch cluster.open-cluster-management.io/placements/status",
				"patch multicluster.x-k8s.io/clusterprofiles/status",
				"patch operator.open-cluster-management.io/clustermanagers/status",
				"patch rbac.open-cluster-management.io/clusterpermissions/status",
				"patch work.open-cluster-management.io/manifestworkreplicasets/status",
				"renew register.open-cluster-management.io/managedclusters/clientcertificates",
				"update addon.open-cluster-management.io/clustermanagementaddons/finalizers",
				"update addon.open-cluster-management.io/managedclusteraddons/finalizers",
				"update certificates.k8s.io/certificatesigningrequests/approval",
				"update cluster.open-cluster-management.io/placements/finalizers",
				"update rbac.open-cluster-management.io/clusterpermissions/finalizers",
				"update register.open-cluster-management.io/managedclusters/accept",
				"update,patch addon.open-cluster-management.io/managedclusteraddons/status",
				"update,patch cluster.open-cluster-management.io/managedclusters/status",
				"update,patch work.open-cluster-management.io/manifestworks/status",
			},
		},
		"of the hub process where a person allows the token driver": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", hub.TokenDriverRole).Rules,
			[]string{
				"create,delete rbac.authorization.k8s.io/roles",
				"create,patch,delete /serviceaccounts",
				"create,subscribe /serviceaccounts/token",
			},
		},
		"of the hub process in its namespace": {
			find[rbacv1.Role](t, list, "Role", hub.Namespace, hub.Name).Rules,
			[]string{
				"create,list,watch /services",
				"create,list,watch networking.k8s.io/networkpolicies",
				"get,list,watch apps/deployments [cluster-manager]",
				"get,patch,delete networking.k8s.io/networkpolicies [cluster-manager-traffic]",
				"get,update coordination.k8s.io/leases [clustermanager-lock]",
				"list,watch /configmaps [ocm-tls-profile]",
				"list,watch /secrets",
				"list,watch apps/deployments [cluster-permission]",
				"patch /services [cluster-manager-addon-webhook cluster-manager-placement cluster-manager-proxy " +
					"cluster-manager-registration-webhook cluster-manager-work-webhook]",
			},
		},
		"of the hub process beside its certificates": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", hub.ComponentsRole).Rules,
			[]string{
				"create /configmaps",
				"create /secrets",
				"create /serviceaccounts",
				"create /services",
				"delete rbac.authorization.k8s.io/roles [open-cluster-management:cluster-manager-addon-manager:loops " +
					"open-cluster-management:cluster-manager-placement:controller open-cluster-management:cluster-manager-registration:controller " +
					"open-cluster-management:cluster-manager-work:controller]",
				"get,delete /secrets [open-cluster-management-image-pull-credentials]",
				"get,delete /serviceaccounts [addon-webhook-sa placement-controller-sa registration-controller-sa registration-webhook-sa " +
					"work-controller-sa work-webhook-sa]",
				"get,delete /services [cluster-manager-addon-webhook cluster-manager-placement cluster-manager-proxy cluster-manager-registration-webhook " +
					"cluster-manager-work-webhook]",
				"get,delete apps/deployments " + componentDeployments,
				"get,delete networking.k8s.io/networkpolicies [allow-egress allow-hub-ingress allow-intra-namespace " +
					"allow-prometheus-ingress default-deny-all]",
				"get,delete policy/poddisruptionbudgets " + componentDeployments,
				"get,list,watch /configmaps [admission-clients]",
				"get,list,watch,patch,delete /configmaps [ca-bundle-configmap]",
				"get,list,watch,patch,delete /secrets [addon-webhook-serving-cert cluster-proxy-serving-cert placement-debug-serving-cert " +
					"registration-webhook-serving-cert signer-secret work-webhook-serving-cert]",
				"list,watch /services",
				"list,watch apps/deployments",
				"list,watch policy/poddisruptionbudgets",
				"patch /services [cluster-manager-placement]",
				"patch,impersonate /serviceaccounts [addon-manager-controller-sa]",
			},
		},
		"of the hub process to make that namespace again": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", hub.RestoreBinding).Rules,
			[]string{
				"bind rbac.authorization.k8s.io/clusterroles [cluster-manager-components cluster-manager-operator]",
				"delete /namespaces [open-cluster-management-hub]",
			},
		},
		"of the hub process where the gate ClusterImporter is on": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", hub.ImporterRole).Rules,
			[]string{
				"create /serviceaccounts/token [agent-registration-bootstrap]",
				"get /configmaps [cluster-info]",
				"get /secrets",
				"get apps/deployments [cluster-manager]",
				"list,watch cluster.x-k8s.io/clusters",
			},
		},
		"of the add-on manager where it copies tokens beside ClusterProfiles": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", hub.CredentialsRole).Rules,
			[]string{"get,list,watch,create,patch,delete /secrets"},
		},
		"of the add-on manager": {find[rbacv1.ClusterRole](t, list, "ClusterRole", "", addOnManagerRole).Rules, []string{
			"approve certificates.k8s.io/signers [kubernetes.io/kube-apiserver-client]",
			"create,get,list,watch certificates.k8s.io/certificatesigningrequests",
			"get,list,watch addon.open-cluster-management.io/addondeploymentconfigs",
			"get,list,watch addon.open-cluster-management.io/addontemplates",
			"get,list,watch cluster.open-cluster-management.io/managedclusters",
			"get,list,watch cluster.open-cluster-management.io/placementdecisions",
			"get,list,watch cluster.open-cluster-management.io/placements",
			"get,list,watch,create,update,patch,delete addon.open-cluster-management.io/managedclusteraddons",
			"get,list,watch,create,update,patch,delete rbac.authorization.k8s.io/rolebindings",
			"get,list,watch,create,update,patch,delete,deletecollection /events",
			"get,list,watch,create,update,patch,delete,deletecollection events.k8s.io/events",
			"get,list,watch,create,update,patch,delete,deletecollection work.open-cluster-management.io/manifestworks",
			"get,list,watch,patch addon.open-cluster-management.io/clustermanagementaddons",
			"update addon.open-cluster-management.io/clustermanagementaddons/finalizers",
			"update addon.open-cluster-management.io/managedclusteraddons/finalizers",
			"update,patch addon.open-cluster-management.io/clustermanagementaddons/status",
			"update,patch addon.open-cluster-management.io/managedclusteraddons/status",
			"update,patch certificates.k8s.io/certificatesigningrequests/approval",
			"update,patch certificates.k8s.io/certificatesigningrequests/status",
		}},
		"of the add-on manager where it is not narrow": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", hub.AddOnAgentsBinding).Rules,
			[]string{
				"approve,sign certificates.k8s.io/signers",
				"create,subscribe /serviceaccounts/token",
				"get,list,watch,create,update,patch,delete /serviceaccounts",
				"get,list,watch,create,update,patch,delete rbac.authorization.k8s.io/roles",
				"get,list,watch,create,update,patch,delete,deletecollection /configmaps",
				"get,list,watch,create,update,patch,delete,deletecollection coordination.k8s.io/leases",
			},
		},
		"of clusters that are not known yet": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", "open-cluster-management:bootstrap").Rules,
			[]string{
				"create cluster.open-cluster-management.io/managedclustersets/join [default]",
				"create,get,list,watch certificates.k8s.io/certificatesigningrequests",
				"get /configmaps [cluster-info kube-root-ca.crt]",
				"get,create,list,watch cluster.open-cluster-management.io/managedclusters",
			},
		},
		"of who reaches managed clusters": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", connectv1alpha1.RoleProxy).Rules,
			[]string{"get,create,update,patch,delete connect.open-cluster-management.io/managedclusters/proxy"},
		},
		"of who reaches Services of managed clusters": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", "open-cluster-management:clusterservices:proxy").Rules,
			[]string{"get,create,update,patch,delete connect.open-cluster-management.io/clusterservices/proxy"},
		},
		"of who acts as accounts there": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", connectv1alpha1.RoleAccounts).Rules,
			[]string{"get,create,update,patch,delete connect.open-cluster-management.io/managedserviceaccounts/proxy"},
		},
		"of agents that open tunnels": {
			find[rbacv1.ClusterRole](t, list, "ClusterRole", "", "open-cluster-management:tunnels:proxy").Rules,
			[]string{"get connect.open-cluster-management.io/tunnels/proxy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, cmp.Diff(tc.want, lines(tc.rules)))
		})
	}
}

func TestBindingsNameTheirSubjectsExactly(t *testing.T) {
	list := objects(t, hub.Options{Version: "v1"})
	account := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: hub.Namespace}}
	}
	for name, want := range map[string][]rbacv1.Subject{
		hub.Name:                                account(hub.Name),
		"open-cluster-management:tunnels:proxy": {{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: clusterv1.GroupManagedClusters}},
		"open-cluster-management:bootstrap:agent-registration": account(hub.BootstrapServiceAccount),
		"open-cluster-management:bootstrap:managedcluster":     {{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "system:bootstrappers:managedcluster"}},
	} {
		require.Equal(t, want, find[rbacv1.ClusterRoleBinding](t, list, "ClusterRoleBinding", "", name).Subjects, name)
	}
}

// TestOnlyAHubThatImportsHasTheRightsForIt: the binding is there in any case, so that an
// administrator can add the subject, and so that switching the gate off removes it.
func TestOnlyAHubThatImportsHasTheRightsForIt(t *testing.T) {
	importing := []rbacv1.Subject{
		{Kind: "ServiceAccount", Name: hub.Name, Namespace: hub.Namespace},
		{Kind: "ServiceAccount", Name: hub.RegistrationAccount, Namespace: hub.ComponentNamespace},
	}
	for importer, want := range map[bool][]rbacv1.Subject{true: importing, false: {}} {
		list := objects(t, hub.Options{Version: "v1", Importer: importer})
		binding := find[rbacv1.ClusterRoleBinding](t, list, "ClusterRoleBinding", "", hub.ImporterRole)
		require.Equal(t, want, append([]rbacv1.Subject{}, binding.Subjects...))
	}
}

// TestOnlyAHubThatCopiesTokensHasTheRightsForIt, whether or not the other rights of the add-on
// manager are narrow.
func TestOnlyAHubThatCopiesTokensHasTheRightsForIt(t *testing.T) {
	copying := []rbacv1.Subject{{Kind: "ServiceAccount", Name: hub.AddOnManager, Namespace: hub.ComponentNamespace}}
	for credentials, want := range map[bool][]rbacv1.Subject{true: copying, false: {}} {
		list := objects(t, hub.Options{Version: "v1", Credentials: credentials, NarrowAddOnRights: credentials, Importer: !credentials})
		binding := find[rbacv1.ClusterRoleBinding](t, list, "ClusterRoleBinding", "", hub.CredentialsRole)
		require.Equal(t, want, append([]rbacv1.Subject{}, binding.Subjects...))
	}
	require.Equal(t, "kubectl set subject clusterrolebinding cluster-manager-credentials "+
		"--serviceaccount=open-cluster-management-hub:addon-manager-controller-sa", hub.AllowCredentials)
}

// TestNarrowRightsOfAddOns: earlier permissions are revoked, because the binding
// explicitly has no subjects.
func TestNarrowRightsOfAddOns(t *testing.T) {
	manager := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "addon-manager-controller-sa", Namespace: "open-cluster-management-hub"}}
	for narrow, want := range map[bool][]rbacv1.Subject{false: manager, true: nil} {
		list := objects(t, hub.Options{Version: "v1", NarrowAddOnRights: narrow})
		require.NotNil(t, find[corev1.ServiceAccount](t, list, "ServiceAccount", hub.ComponentNamespace, hub.AddOnManager))
		require.Equal(t, manager, find[rbacv1.ClusterRoleBinding](t, list, "ClusterRoleBinding", "", addOnManagerRole).Subjects)
		require.ElementsMatch(t, want, find[rbacv1.ClusterRoleBinding](t, list, "ClusterRoleBinding", "", hub.AddOnAgentsBinding).Subjects)
		require.Equal(t, narrow, len(find[rbacv1.ClusterRoleBinding](t, list, "ClusterRoleBinding", "", hub.RestoreBinding).Subjects) == 0)
		for _, u := range list {
			if u.GetName() == hub.AddOnAgentsBinding && u.GetKind() == "ClusterRoleBinding" {
				_, said := u.Object["subjects"]
				require.True(t, said)
			}
		}
	}
}
