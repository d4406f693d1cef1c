// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
)

// InstallStrategy says on which clusters an add-on is installed.
type InstallStrategy struct {
	// type is Manual to install where a ManagedClusterAddOn is created, or Placements to
	// install on the clusters that placements select. The default is Manual.
	// +optional
	// +kubebuilder:default=Manual
	// +kubebuilder:validation:Enum=Manual;Placements
	Type string `json:"type,omitempty"`

	// placements select the clusters when type is Placements. If several select a cluster,
	// the last one counts.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	Placements []PlacementStrategy `json:"placements,omitempty"`
}

// Types of install strategies.
const (
	// InstallStrategyManual installs where a ManagedClusterAddOn is created.
	InstallStrategyManual = "Manual"
	// InstallStrategyPlacements installs where placements select.
	InstallStrategyPlacements = "Placements"
)

// PlacementStrategy says how an add-on is installed on the clusters of one
// placement.
type PlacementStrategy struct {
	PlacementRef `json:",inline"`

	// configs are configuration objects for these clusters; they take precedence
	// over the defaults of the add-on.
	// +optional
	Configs []AddOnConfig `json:"configs,omitempty"`

	// rolloutStrategy says how a change of the configuration reaches the clusters.
	// The default is All.
	// +optional
	// +kubebuilder:default={type: All}
	RolloutStrategy clusterv1alpha1.RolloutStrategy `json:"rolloutStrategy,omitzero"`
}

// PlacementRef names a placement.
type PlacementRef struct {
	// namespace of the placement.
	// +required
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`

	// name of the placement.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// InstallProgression is the rollout progress on the clusters of one placement.
type InstallProgression struct {
	PlacementRef `json:",inline"`

	// configReferences are the configurations of these clusters.
	// +optional
	ConfigReferences []InstallConfigReference `json:"configReferences,omitempty"`

	// conditions hold Progressing.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
