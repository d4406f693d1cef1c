// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// NodePlacement says on which nodes the installed pods may run.
type NodePlacement struct {
	// nodeSelector holds the labels that a node must carry. Absent means every
	// node.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations let the pods run on tainted nodes. Absent means none.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// ResourceRequirement says what the installed containers request.
type ResourceRequirement struct {
	// type is Default for the recommended values, BestEffort for no requests and no limits,
	// or ResourceRequirement for resourceRequirements. The default is Default.
	// +optional
	// +kubebuilder:default=Default
	Type ResourceQosClass `json:"type,omitempty"`

	// resourceRequirements are the requests and limits of every container when
	// type is ResourceRequirement.
	// +optional
	ResourceRequirements *corev1.ResourceRequirements `json:"resourceRequirements,omitempty"`
}

// ResourceQosClass is how the requests of containers are chosen.
//
// +kubebuilder:validation:Enum=Default;BestEffort;ResourceRequirement
type ResourceQosClass string

// Ways to choose requests.
const (
	// ResourceQosClassDefault uses the recommended values.
	ResourceQosClassDefault ResourceQosClass = "Default"
	// ResourceQosClassBestEffort sets no requests and no limits.
	ResourceQosClassBestEffort ResourceQosClass = "BestEffort"
	// ResourceQosClassResourceRequirement uses those of the object.
	ResourceQosClassResourceRequirement ResourceQosClass = "ResourceRequirement"
)

// FeatureGate switches one feature.
type FeatureGate struct {
	// feature is the name of the gate.
	// +required
	Feature string `json:"feature"`

	// mode is Enable or Disable. The default is Disable.
	// +optional
	// +kubebuilder:default=Disable
	Mode FeatureGateModeType `json:"mode,omitempty"`
}

// FeatureGateModeType is the setting of a feature gate.
//
// +kubebuilder:validation:Enum=Enable;Disable
type FeatureGateModeType string

// Settings of a feature gate.
const (
	// FeatureGateModeTypeEnable switches the feature on.
	FeatureGateModeTypeEnable FeatureGateModeType = "Enable"
	// FeatureGateModeTypeDisable switches the feature off.
	FeatureGateModeTypeDisable FeatureGateModeType = "Disable"
)

// InstallMode is where the installed parts run.
type InstallMode string

// Install modes. A ClusterManager accepts Default and Hosted; a Klusterlet accepts all
// four.
const (
	// InstallModeDefault runs everything on the cluster itself.
	InstallModeDefault InstallMode = "Default"
	// InstallModeSingleton is Default with one agent process.
	InstallModeSingleton InstallMode = "Singleton"
	// InstallModeHosted runs the parts on another cluster.
	InstallModeHosted InstallMode = "Hosted"
	// InstallModeSingletonHosted is Hosted with one agent process.
	InstallModeSingletonHosted InstallMode = "SingletonHosted"
)

// GenerationStatus records the generation of an object that was last written.
type GenerationStatus struct {
	// group of the resource; empty is the core group.
	// +required
	Group string `json:"group"`

	// version of the resource.
	// +required
	Version string `json:"version"`

	// resource is the plural name of the resource.
	// +required
	Resource string `json:"resource"`

	// namespace of the object; empty for one without a namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +required
	Name string `json:"name"`

	// lastGeneration is the generation that the object had after the last write.
	// +required
	LastGeneration int64 `json:"lastGeneration"`
}

// RelatedResourceMeta names an object that was installed.
type RelatedResourceMeta struct {
	// group of the resource; empty is the core group.
	// +required
	Group string `json:"group"`

	// version of the resource.
	// +required
	Version string `json:"version"`

	// resource is the plural name of the resource.
	// +required
	Resource string `json:"resource"`

	// namespace of the object; empty for one without a namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +required
	Name string `json:"name"`
}
