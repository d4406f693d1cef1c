// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// SetInfo is the summary of one ManifestWorkReplicaSet.
type SetInfo struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Placements are those of its spec.
	Placements []string `json:"placements"`
	// Clusters is how many are selected, the others how many of their works are in that state.
	Clusters    int `json:"clusters"`
	Applied     int `json:"applied"`
	Available   int `json:"available"`
	Progressing int `json:"progressing"`
	Degraded    int `json:"degraded"`
	// Updated counts works that have succeeded with the current template.
	Updated int               `json:"updated"`
	Created metav1.Time       `json:"created"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Strategy is that of the rollout, when all placements share one.
	Strategy string `json:"strategy,omitempty"`
	// Message is what is wrong.
	Message string `json:"message,omitempty"`
}

// ListSets lists sets of works of a namespace, or of all when it is empty, by namespace and
// name. It keeps sets with the given names; none keeps all.
func ListSets(ctx context.Context, hub *fleet.Cluster, namespace string, names []string) ([]SetInfo, error) {
	items, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.ReplicaSets, Namespace: namespace})
	if err != nil {
		return nil, fleet.Explain("listing manifestworkreplicasets", hub, err)
	}
	if len(items) == 0 {
		if err := fleet.NeedHub(ctx, hub); err != nil {
			return nil, err
		}
	}
	var out []SetInfo
	for i := range items {
		if len(names) > 0 && !slices.Contains(names, items[i].GetName()) {
			continue
		}
		set, err := typed.FromUnstructured[workv1alpha1.ManifestWorkReplicaSet](&items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, SetInfoOf(set))
	}
	slices.SortFunc(out, func(a, b SetInfo) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// SetInfoOf returns the summary of one set of works.
func SetInfoOf(set *workv1alpha1.ManifestWorkReplicaSet) SetInfo {
	sum := set.Status.Summary
	succeeded, selected := set.Status.RolledOut()
	// A hub that does not count the selected clusters counts the works it has created.
	info := SetInfo{Namespace: set.Namespace, Name: set.Name, Clusters: max(selected, sum.Total), Applied: sum.Applied, Available: sum.Available,
		Progressing: sum.Progressing, Degraded: sum.Degraded, Updated: succeeded, Created: set.CreationTimestamp, Labels: set.Labels}
	for i, ref := range set.Spec.PlacementRefs {
		info.Placements = append(info.Placements, ref.Name)
		if kind := string(ref.RolloutStrategy.Type); i == 0 {
			info.Strategy = kind
		} else if info.Strategy != kind {
			info.Strategy = "mixed"
		}
	}
	for _, kind := range []string{workv1alpha1.ConditionPlacementVerified, workv1alpha1.ConditionManifestworkApplied, workv1alpha1.ConditionPlacementRolledOut} {
		if c := apimeta.FindStatusCondition(set.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			info.Message = c.Reason
			if c.Message != "" {
				info.Message = fleet.OneLine(c.Message)
			}
			return info
		}
	}
	if len(set.Status.Conditions) == 0 {
		info.Message = "the hub has not processed it"
	}
	return info
}
