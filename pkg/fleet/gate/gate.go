// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Gates for which the hub gets further permissions: for the first one alone, for the others
// together.
const (
	ClusterImporter       = "ClusterImporter"
	ClusterProfile        = "ClusterProfile"
	ManagedServiceAccount = "ManagedServiceAccount"
)

// Feature gates by the part of the configuration they belong to.
var (
	// Hub are the gates of hub init.
	Hub = map[string][]string{
		"registration": {"DefaultClusterSet", "V1beta1CSRAPICompatibility", "ManagedClusterAutoApproval", "ResourceCleanup", ClusterProfile, ClusterImporter,
			"NetworkPolicies", connectv1alpha1.GateClusterProxy},
		"work":      {"NilExecutorValidating", "ManifestWorkReplicaSet", "CloudEventsDrivers", "CleanUpCompletedManifestWork", "ClusterPermission"},
		"addon":     {"AddonManagement", ManagedServiceAccount, "ManagedServiceAccountEphemeralIdentity"},
		"placement": {"SIGPlacementDecision", "PlacementDebugServer"},
	}
	// Agent are the gates of join.
	Agent = map[string][]string{
		"registration": {"ClusterClaim", "ClusterProperty", "AddonManagement", "V1beta1CSRAPICompatibility", "MultipleHubs",
			connectv1alpha1.GateClusterProxy},
		"work": {"ExecutorValidatingCaches", "RawFeedbackJsonString"},
	}
)

// Check returns an error for names that are in none of the lists.
func Check(gates map[string]bool, known map[string][]string) error {
	all := sets.New[string]()
	for _, names := range known {
		all.Insert(names...)
	}
	for name := range gates {
		if !all.Has(name) {
			return fleet.Misuse(fmt.Sprintf("there is no feature gate %q", name), "", fleet.Advice("use one of "+strings.Join(sets.List(all), ", ")))
		}
	}
	return nil
}

// Split splits the gates of an agent by the part they belong to.
func Split(gates map[string]bool) (registration, work map[string]bool) {
	registration, work = map[string]bool{}, map[string]bool{}
	for name, on := range gates {
		if slices.Contains(Agent["work"], name) {
			work[name] = on
		} else {
			registration[name] = on
		}
	}
	return registration, work
}

// Merge sets gates in a list, keeps the others, and sorts by name.
func Merge(list []operatorv1.FeatureGate, gates map[string]bool) []operatorv1.FeatureGate {
	all := map[string]operatorv1.FeatureGateModeType{}
	for _, g := range list {
		all[g.Feature] = g.Mode
	}
	modes := map[bool]operatorv1.FeatureGateModeType{true: operatorv1.FeatureGateModeTypeEnable, false: operatorv1.FeatureGateModeTypeDisable}
	for name, on := range gates {
		all[name] = modes[on]
	}
	var out []operatorv1.FeatureGate
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, operatorv1.FeatureGate{Feature: name, Mode: all[name]})
	}
	return out
}

// Annotation adds the prefix that an agent's annotations must have.
func Annotation(key string) string {
	if strings.HasPrefix(key, clusterv1.AnnotationPrefixAgent) {
		return key
	}
	return clusterv1.AnnotationPrefixAgent + "/" + key
}
