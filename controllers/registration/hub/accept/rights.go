// SPDX-License-Identifier: Apache-2.0

package accept

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Rights are the RBAC objects of one cluster, as found.
type Rights struct {
	// Role and Binding are the cluster's ClusterRole and the ClusterRoleBinding to it.
	Role, Binding Found
	// Registration and Work are the RoleBindings in the cluster's namespace.
	Registration, Work Found
}

func labels(cluster string) map[string]string {
	return map[string]string{clusterv1.LabelClusterName: cluster}
}

// subjects are the subjects of every binding: the agent's own group, and the one granted by
// EKS access entries.
func subjects(cluster string) []rbacv1.Subject {
	return []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: identity.ClusterGroup(cluster)},
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: clusterv1.GroupPrefixEKS + cluster},
	}
}

func policyRule(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
}

// acceptedRules are an agent's rights outside its namespace; exactly these four.
func acceptedRules(cluster string) []rbacv1.PolicyRule {
	own := []string{cluster}
	return []rbacv1.PolicyRule{
		policyRule("certificates.k8s.io", "certificatesigningrequests", nil, "create", "get", "list", "watch"),
		policyRule(clusterv1.RegisterGroup, "managedclusters/clientcertificates", nil, "renew"),
		policyRule(clusterv1.GroupName, "managedclusters", own, "get", "list", "update", "watch"),
		policyRule(clusterv1.GroupName, "managedclusters/status", own, "patch", "update"),
	}
}

// deniedRules let an agent see that it was denied; exactly this one.
func deniedRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{policyRule(clusterv1.GroupName, "managedclusters", []string{cluster}, "get", "list", "watch")}
}

// sharedRoles are the roles bound in the namespace of every accepted cluster.
func sharedRoles() []*rbacv1.ClusterRole {
	registration := clusterRole(clusterv1.RoleRegistration, "",
		policyRule("coordination.k8s.io", "leases", []string{clusterv1.LeaseName}, "get", "list", "watch", "update"),
		policyRule(addonv1alpha1.GroupName, "managedclusteraddons", nil, "get", "list", "watch"),
		policyRule(addonv1alpha1.GroupName, "managedclusteraddons/status", nil, "patch", "update"),
		policyRule("events.k8s.io", "events", nil, "create"),
	)
	work := clusterRole(clusterv1.RoleWork, "",
		rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		policyRule(workv1.GroupName, "manifestworks", nil, "get", "list", "watch", "update", "patch"),
		policyRule(workv1.GroupName, "manifestworks/status", nil, "patch", "update"),
	)
	return []*rbacv1.ClusterRole{registration, work}
}

func clusterRole(name, cluster string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(cluster)},
		Rules:      rules,
	}
}

func roleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

func clusterBinding(cluster string) *rbacv1.ClusterRoleBinding {
	name := clusterv1.RolePrefixManagedCluster + cluster
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(cluster)},
		Subjects:   subjects(cluster),
		RoleRef:    roleRef(name),
	}
}

func roleBinding(cluster, suffix, role string, finalizers ...string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: clusterv1.RolePrefixManagedCluster + cluster + suffix,
			Labels: labels(cluster), Finalizers: finalizers,
		},
		Subjects: subjects(cluster),
		RoleRef:  roleRef(role),
	}
}

func registrationBinding(cluster string) *rbacv1.RoleBinding {
	return roleBinding(cluster, clusterv1.RoleBindingSuffixRegistration, clusterv1.RoleRegistration)
}

// workBinding has a finalizer, so that the agent can still remove works while the binding is
// being deleted.
func workBinding(cluster string) *rbacv1.RoleBinding {
	return roleBinding(cluster, clusterv1.RoleBindingSuffixWork, clusterv1.RoleWork, clusterv1.FinalizerManifestWorkCleanup)
}
