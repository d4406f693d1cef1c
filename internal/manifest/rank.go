// SPDX-License-Identifier: Apache-2.0

package manifest

// Ranks in addition to those of the table.
const (
	// RankOther is the rank of every kind that is not in the table.
	RankOther = 1000
	// RankBroken is the rank of a manifest that could not be decoded.
	RankBroken = 1001
)

// kindRanks lists kinds in the order in which they are applied, by kind name in any
// group, with the plural by which the same kind is deleted.
var kindRanks = []struct {
	kind, resource string
	rank           int
}{
	{"PriorityClass", "priorityclasses", 0},
	{"Namespace", "namespaces", 0},
	{"CustomResourceDefinition", "customresourcedefinitions", 0},
	{"StorageClass", "storageclasses", 0},
	{"PersistentVolume", "persistentvolumes", 0},
	{"PodSecurityPolicy", "podsecuritypolicies", 0},
	{"ClusterRole", "clusterroles", 1},
	{"ClusterRoleBinding", "clusterrolebindings", 1},
	{"Role", "roles", 1},
	{"RoleBinding", "rolebindings", 1},
	{"NetworkPolicy", "networkpolicies", 2},
	{"ResourceQuota", "resourcequotas", 2},
	{"LimitRange", "limitranges", 2},
	{"PodDisruptionBudget", "poddisruptionbudgets", 2},
	{"ServiceAccount", "serviceaccounts", 2},
	{"Secret", "secrets", 3},
	{"ConfigMap", "configmaps", 3},
	{"PersistentVolumeClaim", "persistentvolumeclaims", 3},
	{"Service", "services", 4},
	{"DaemonSet", "daemonsets", 5},
	{"Pod", "pods", 5},
	{"ReplicationController", "replicationcontrollers", 5},
	{"ReplicaSet", "replicasets", 5},
	{"Deployment", "deployments", 5},
	{"HorizontalPodAutoscaler", "horizontalpodautoscalers", 5},
	{"StatefulSet", "statefulsets", 5},
	{"Job", "jobs", 5},
	{"CronJob", "cronjobs", 5},
	{"APIService", "apiservices", 6},
	{"MutatingWebhookConfiguration", "mutatingwebhookconfigurations", 6},
	{"ValidatingWebhookConfiguration", "validatingwebhookconfigurations", 6},
	{"ValidatingAdmissionPolicy", "validatingadmissionpolicies", 6},
	{"ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", 6},
}

// Rank returns the position of a kind in the order of applies: lower ranks first.
func Rank(kind string) int {
	for _, r := range kindRanks {
		if r.kind == kind {
			return r.rank
		}
	}
	return RankOther
}

// RankResource is Rank for a plural. Objects are deleted from the highest rank to the
// lowest, so that custom objects go before their definition and workloads before what
// they use.
func RankResource(resource string) int {
	for _, r := range kindRanks {
		if r.resource == resource {
			return r.rank
		}
	}
	return RankOther
}
