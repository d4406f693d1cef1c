// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ranks in addition to those of the table.
const (
	// RankOther is the rank of every kind that is not in the table.
	RankOther = 1000
	// RankBroken is the rank of a manifest that could not be decoded.
	RankBroken = 1001
)

// kindRanks lists kinds, in any group, by the rank in which they are applied.
var kindRanks = [][]string{
	{"PriorityClass", "Namespace", "CustomResourceDefinition", "StorageClass", "PersistentVolume", "PodSecurityPolicy"},
	{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	{"NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "ServiceAccount"},
	{"Secret", "ConfigMap", "PersistentVolumeClaim"},
	{"Service"},
	{
		"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
		"StatefulSet", "Job", "CronJob",
	},
	{
		"APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	},
}

// byKind and byPlural are the ranks by kind, and by the plural by which it is deleted.
var byKind, byPlural = ranks()

func ranks() (byKind, byPlural map[string]int) {
	byKind, byPlural = map[string]int{}, map[string]int{}
	for rank, kinds := range kindRanks {
		for _, kind := range kinds {
			plural, _ := apimeta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind}) // right for these
			byKind[kind], byPlural[plural.Resource] = rank, rank
		}
	}
	return byKind, byPlural
}

// Rank returns the position of a kind in the order of applies: lower ranks first.
func Rank(kind string) int { return rankIn(byKind, kind) }

// RankResource is Rank for a plural. Objects are deleted from the highest rank to the
// lowest, so that custom objects go before their definition and workloads before what
// they use.
func RankResource(resource string) int { return rankIn(byPlural, resource) }

func rankIn(ranks map[string]int, name string) int {
	if rank, known := ranks[name]; known {
		return rank
	}
	return RankOther
}
