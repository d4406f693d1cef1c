// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterManager installs the hub on this cluster or, in mode Hosted, a hub that runs here
// for another cluster. There is usually one, named cluster-manager.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustermanagers,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="open-cluster-management.io/created-by-clustermanager=cluster-manager"
// +kubebuilder:storageversion
type ClusterManager struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. Labels are copied to the installed objects.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to install. The default is mode Default.
	// +optional
	// +kubebuilder:default={deployOption: {mode: Default}}
	Spec ClusterManagerSpec `json:"spec,omitempty"`

	// status reports what is installed and its health.
	// +optional
	Status ClusterManagerStatus `json:"status,omitzero"`
}

// ClusterManagerSpec is the desired state of a ClusterManager.
type ClusterManagerSpec struct {
	// registrationImagePullSpec is the image of registration. A default image
	// of Open Cluster Management, whatever its tag, means our own image of the
	// installed version. The default is
	// quay.io/open-cluster-management/registration.
	// +optional
	// +kubebuilder:default=quay.io/open-cluster-management/registration
	RegistrationImagePullSpec string `json:"registrationImagePullSpec,omitempty"`

	// workImagePullSpec is the image of work distribution, read like
	// registrationImagePullSpec. The default is
	// quay.io/open-cluster-management/work.
	// +optional
	// +kubebuilder:default=quay.io/open-cluster-management/work
	WorkImagePullSpec string `json:"workImagePullSpec,omitempty"`

	// placementImagePullSpec is the image of placement, read like
	// registrationImagePullSpec. The default is
	// quay.io/open-cluster-management/placement.
	// +optional
	// +kubebuilder:default=quay.io/open-cluster-management/placement
	PlacementImagePullSpec string `json:"placementImagePullSpec,omitempty"`

	// addOnManagerImagePullSpec is the image of the add-on manager, read like
	// registrationImagePullSpec. The default is
	// quay.io/open-cluster-management/addon-manager.
	// +optional
	// +kubebuilder:default=quay.io/open-cluster-management/addon-manager
	AddOnManagerImagePullSpec string `json:"addOnManagerImagePullSpec,omitempty"`

	// nodePlacement says on which nodes the pods run.
	// +optional
	NodePlacement NodePlacement `json:"nodePlacement,omitzero"`

	// deployOption says where the hub runs. The default is mode Default.
	// +optional
	// +kubebuilder:default={mode: Default}
	DeployOption ClusterManagerDeployOption `json:"deployOption,omitzero"`

	// registrationConfiguration refines registration.
	// +optional
	RegistrationConfiguration *RegistrationHubConfiguration `json:"registrationConfiguration,omitempty"`

	// workConfiguration refines work distribution.
	// +optional
	// +kubebuilder:default={workDriver: kube}
	WorkConfiguration *WorkConfiguration `json:"workConfiguration,omitempty"`

	// placementConfiguration refines placement.
	// +optional
	PlacementConfiguration *PlacementConfiguration `json:"placementConfiguration,omitempty"`

	// addOnManagerConfiguration refines the add-on manager.
	// +optional
	AddOnManagerConfiguration *AddOnManagerConfiguration `json:"addOnManagerConfiguration,omitempty"`

	// serverConfiguration refines the gRPC server.
	// +optional
	ServerConfiguration *ServerConfiguration `json:"serverConfiguration,omitempty"`

	// resourceRequirement says what the containers request.
	// +optional
	ResourceRequirement *ResourceRequirement `json:"resourceRequirement,omitempty"`
}

// ClusterManagerDeployOption says where the hub runs.
type ClusterManagerDeployOption struct {
	// mode is Default to run the hub on this cluster, or Hosted to run it here
	// while its API objects live on another cluster. The default is Default.
	// +required
	// +kubebuilder:default=Default
	// +kubebuilder:validation:Enum=Default;Hosted
	Mode InstallMode `json:"mode,omitempty"`

	// default refines the mode Default.
	// +optional
	Default *DefaultClusterManagerConfiguration `json:"default,omitempty"`

	// hosted refines the mode Hosted.
	// +optional
	Hosted *HostedClusterManagerConfiguration `json:"hosted,omitempty"`
}

// DefaultClusterManagerConfiguration refines the mode Default.
type DefaultClusterManagerConfiguration struct {
	// registrationWebhookConfiguration refines the webhook of registration.
	// +optional
	RegistrationWebhookConfiguration DefaultWebhookConfiguration `json:"registrationWebhookConfiguration,omitzero"`

	// workWebhookConfiguration refines the webhook of work.
	// +optional
	WorkWebhookConfiguration DefaultWebhookConfiguration `json:"workWebhookConfiguration,omitzero"`

	// addonWebhookConfiguration refines the webhook of add-ons.
	// +optional
	AddonWebhookConfiguration DefaultWebhookConfiguration `json:"addonWebhookConfiguration,omitzero"`
}

// HostedClusterManagerConfiguration refines the mode Hosted.
type HostedClusterManagerConfiguration struct {
	// registrationWebhookConfiguration says how the hub reaches the webhook of
	// registration.
	// +optional
	RegistrationWebhookConfiguration HostedWebhookConfiguration `json:"registrationWebhookConfiguration,omitzero"`

	// workWebhookConfiguration says how the hub reaches the webhook of work.
	// +optional
	WorkWebhookConfiguration HostedWebhookConfiguration `json:"workWebhookConfiguration,omitzero"`
}

// DefaultWebhookConfiguration refines a webhook on the hub itself.
type DefaultWebhookConfiguration struct {
	// bindConfiguration says which ports the webhook listens on.
	// +optional
	BindConfiguration BindConfiguration `json:"bindConfiguration,omitzero"`
}

// HostedWebhookConfiguration refines a webhook that the hub reaches from
// outside.
type HostedWebhookConfiguration struct {
	// address is the host name or IP address under which the hub reaches the
	// webhook.
	// +required
	// +kubebuilder:validation:Pattern=`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\-]*[A-Za-z0-9])$`
	Address string `json:"address"`

	// port under which the hub reaches the webhook, at most 65535. The default is
	// 443.
	// +optional
	// +kubebuilder:default=443
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// bindConfiguration says which ports the webhook listens on.
	// +optional
	BindConfiguration BindConfiguration `json:"bindConfiguration,omitzero"`
}

// BindConfiguration says which ports a webhook listens on.
type BindConfiguration struct {
	// port of the webhook, at most 65535. The default is 9443.
	// +optional
	// +kubebuilder:default=9443
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// healthProbePort is the port of the health probes, at most 65535; 0 switches
	// them off. The default is 8000.
	// +optional
	// +kubebuilder:default=8000
	// +kubebuilder:validation:Maximum=65535
	HealthProbePort *int32 `json:"healthProbePort,omitempty"`

	// metricsPort is the port of the metrics, at most 65535; 0 switches them off.
	// The default is 8080.
	// +optional
	// +kubebuilder:default=8080
	// +kubebuilder:validation:Maximum=65535
	MetricsPort *int32 `json:"metricsPort,omitempty"`

	// hostNetwork runs the webhook in the network of its node. The default is
	// false.
	// +optional
	HostNetwork bool `json:"hostNetwork,omitempty"`
}

// ClusterManagerStatus is the observed state of a ClusterManager.
type ClusterManagerStatus struct {
	// observedGeneration is the generation of the spec that was last handled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions hold Applied, Progressing, HubRegistrationDegraded,
	// HubPlacementDegraded, ValidFeatureGates and others.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// generations record the generations of the Deployments that were installed.
	// +optional
	Generations []GenerationStatus `json:"generations,omitempty"`

	// relatedResources name what was installed.
	// +optional
	RelatedResources []RelatedResourceMeta `json:"relatedResources,omitempty"`
}

// ClusterManagerList is a list of ClusterManagers.
//
// +kubebuilder:object:root=true
type ClusterManagerList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ClusterManagers.
	Items []ClusterManager `json:"items"`
}
