// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutStrategy says in which order and how fast a change reaches the clusters of
// a placement.
type RolloutStrategy struct {
	// type picks the strategy. All changes every cluster at once. Progressive
	// changes a bounded number of clusters at a time. ProgressivePerGroup changes
	// one decision group of the placement after the other. The default is All.
	// +optional
	// +kubebuilder:default=All
	Type RolloutType `json:"type,omitempty"`

	// all refines the strategy All.
	// +optional
	All *RolloutAll `json:"all,omitempty"`

	// progressive refines the strategy Progressive.
	// +optional
	Progressive *RolloutProgressive `json:"progressive,omitempty"`

	// progressivePerGroup refines the strategy ProgressivePerGroup.
	// +optional
	ProgressivePerGroup *RolloutProgressivePerGroup `json:"progressivePerGroup,omitempty"`
}

// RolloutType is the name of a rollout strategy.
//
// +kubebuilder:validation:Enum=All;Progressive;ProgressivePerGroup
type RolloutType string

// Rollout strategies.
const (
	// RolloutTypeAll changes every cluster at once.
	RolloutTypeAll RolloutType = "All"
	// RolloutTypeProgressive changes a bounded number of clusters at a time.
	RolloutTypeProgressive RolloutType = "Progressive"
	// RolloutTypeProgressivePerGroup changes one decision group at a time.
	RolloutTypeProgressivePerGroup RolloutType = "ProgressivePerGroup"
)

// ProgressDeadlineNone is the progressDeadline that never expires.
const ProgressDeadlineNone = "None"

// RolloutConfig holds the limits that all strategies have.
type RolloutConfig struct {
	// minSuccessTime is how long a cluster must have succeeded before it counts
	// as done and the next one is changed, for example 30s. The default is 0.
	// +optional
	// +kubebuilder:default="0"
	MinSuccessTime metav1.Duration `json:"minSuccessTime,omitzero"`

	// progressDeadline is how long a cluster may take to succeed before it counts
	// as failed, a number with unit h, m or s, for example 10m, or None for no
	// limit. The default is None.
	// +optional
	// +kubebuilder:default=None
	// +kubebuilder:validation:Pattern=`^(([0-9])+[h|m|s])|None$`
	ProgressDeadline string `json:"progressDeadline,omitempty"`

	// maxFailures is how many clusters may fail before the rollout stops: a
	// number, or a share of all clusters such as 10%. The default is 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxFailures intstr.IntOrString `json:"maxFailures,omitempty"`
}

// RolloutAll refines the strategy All.
type RolloutAll struct {
	RolloutConfig `json:",inline"`
}

// RolloutProgressive refines the strategy Progressive.
type RolloutProgressive struct {
	RolloutConfig `json:",inline"`

	MandatoryDecisionGroups `json:",inline"`

	// maxConcurrency is how many clusters are changed at a time: a number, or a
	// share of all clusters such as 25%. The default is the number of clusters in
	// a decision group of the placement.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
}

// RolloutProgressivePerGroup refines the strategy ProgressivePerGroup.
type RolloutProgressivePerGroup struct {
	RolloutConfig `json:",inline"`

	MandatoryDecisionGroups `json:",inline"`
}

// MandatoryDecisionGroups lists decision groups that must succeed first.
type MandatoryDecisionGroups struct {
	// mandatoryDecisionGroups are decision groups of the placement that are
	// changed first and must succeed before any other cluster is changed.
	// +optional
	MandatoryDecisionGroups []MandatoryDecisionGroup `json:"mandatoryDecisionGroups,omitempty"`
}

// MandatoryDecisionGroup names a decision group by name or by index.
type MandatoryDecisionGroup struct {
	// groupName is the name of the group. It takes precedence over groupIndex.
	// +optional
	GroupName string `json:"groupName,omitempty"`

	// groupIndex is the index of the group, counted from 0.
	// +optional
	GroupIndex int32 `json:"groupIndex,omitempty"`
}
