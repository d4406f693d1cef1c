// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Klusterlet installs the agent of a managed cluster, on that cluster or, in the hosted
// modes, on another one. There is usually one, named klusterlet.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=klusterlets,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="open-cluster-management.io/created-by-klusterlet=klusterlet"
// +kubebuilder:storageversion
type Klusterlet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. Labels are copied to the installed objects.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to install and which hub to join.
	// +optional
	Spec KlusterletSpec `json:"spec,omitempty"`

	// status reports what is installed and its health.
	// +optional
	Status KlusterletStatus `json:"status,omitzero"`
}

// KlusterletSpec is the desired state of a Klusterlet.
type KlusterletSpec struct {
	// namespace that the agent runs in; it must begin with
	// open-cluster-management- and have at most 57 characters. Absent means
	// open-cluster-management-agent. In the hosted modes the agent runs in the
	// namespace that is named like the Klusterlet, and this one is used on the
	// managed cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=57
	// +kubebuilder:validation:Pattern=`^open-cluster-management-[-a-z0-9]*[a-z0-9]$`
	Namespace string `json:"namespace,omitempty"`

	// registrationImagePullSpec is the image of registration. A default image
	// of Open Cluster Management, whatever its tag, means our own image of the
	// installed version, and so does absence.
	// +optional
	RegistrationImagePullSpec string `json:"registrationImagePullSpec,omitempty"`

	// workImagePullSpec is the image of the work agent, read like
	// registrationImagePullSpec.
	// +optional
	WorkImagePullSpec string `json:"workImagePullSpec,omitempty"`

	// imagePullSpec is the image of the agent in the singleton modes, read like
	// registrationImagePullSpec.
	// +optional
	ImagePullSpec string `json:"imagePullSpec,omitempty"`

	// clusterName is the name under which the cluster joins the hub, a DNS label
	// of at most 63 characters. Absent means a random one that the agent keeps.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ClusterName string `json:"clusterName,omitempty"`

	// externalServerURLs are addresses of the managed cluster that are reported to the hub.
	// +optional
	ExternalServerURLs []ServerURL `json:"externalServerURLs,omitempty"`

	// nodePlacement says on which nodes the pods run.
	// +optional
	NodePlacement NodePlacement `json:"nodePlacement,omitzero"`

	// deployOption says where the agent runs and in how many processes.
	// +optional
	DeployOption KlusterletDeployOption `json:"deployOption,omitzero"`

	// registrationConfiguration refines the registration agent.
	// +optional
	RegistrationConfiguration *RegistrationConfiguration `json:"registrationConfiguration,omitempty"`

	// workConfiguration refines the work agent.
	// +optional
	WorkConfiguration *WorkAgentConfiguration `json:"workConfiguration,omitempty"`

	// hubApiServerHostAlias gives the agent's pods an address for the host name
	// of the hub.
	// +optional
	HubAPIServerHostAlias *HubAPIServerHostAlias `json:"hubApiServerHostAlias,omitempty"`

	// resourceRequirement says what the containers request.
	// +optional
	ResourceRequirement *ResourceRequirement `json:"resourceRequirement,omitempty"`

	// priorityClassName is the priority class of the pods. Absent means none. It is ignored
	// if the class does not exist.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// ServerURL is one address of a managed cluster.
type ServerURL struct {
	// url is the address, with scheme https.
	// +required
	URL string `json:"url"`

	// caBundle holds the PEM certificates that verify the address. Absent means those of
	// the cluster itself.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// KlusterletDeployOption says where the agent runs.
type KlusterletDeployOption struct {
	// mode is Default (two processes on the managed cluster), Singleton (one
	// process there), Hosted (two processes on another cluster) or
	// SingletonHosted (one process there). Absent means Default.
	// +optional
	Mode InstallMode `json:"mode,omitempty"`
}

// HubAPIServerHostAlias is an entry of the hosts file of the agent's pods.
type HubAPIServerHostAlias struct {
	// ip is the IPv4 address of the hub.
	// +required
	// +kubebuilder:validation:Pattern=`^(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)$`
	IP string `json:"ip"`

	// hostname is the host name that resolves to the address.
	// +required
	// +kubebuilder:validation:Pattern=`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\-]*[A-Za-z0-9])$`
	Hostname string `json:"hostname"`
}

// KlusterletStatus is the observed state of a Klusterlet.
type KlusterletStatus struct {
	// observedGeneration is the generation of the spec that was last handled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions hold Applied, Available, HubConnectionDegraded,
	// RegistrationDesiredDegraded, WorkDesiredDegraded, ValidFeatureGates and
	// others.
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

// KlusterletList is a list of Klusterlets.
//
// +kubebuilder:object:root=true
type KlusterletList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the Klusterlets.
	Items []Klusterlet `json:"items"`
}
