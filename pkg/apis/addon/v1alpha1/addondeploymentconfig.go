// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddOnDeploymentConfig configures how the agent of an add-on is deployed on
// managed clusters: variables, nodes, images, proxy, namespace and resources.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addondeploymentconfigs,scope=Namespaced
// +kubebuilder:storageversion
type AddOnDeploymentConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the configuration.
	// +required
	Spec AddOnDeploymentConfigSpec `json:"spec"`
}

// AddOnDeploymentConfigSpec is the content of an AddOnDeploymentConfig.
type AddOnDeploymentConfigSpec struct {
	// customizedVariables are values that the add-on may use by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	CustomizedVariables []CustomizedVariable `json:"customizedVariables,omitempty"`

	// nodePlacement says on which nodes the agent runs.
	// +optional
	NodePlacement *NodePlacement `json:"nodePlacement,omitempty"`

	// registries replace the registries that images come from.
	// +optional
	Registries []ImageMirror `json:"registries,omitempty"`

	// proxyConfig is the proxy that the agent uses.
	// +optional
	ProxyConfig ProxyConfig `json:"proxyConfig,omitzero"`

	// agentInstallNamespace is the namespace on the managed cluster that the agent
	// runs in, at most 63 characters. An empty string leaves the namespace of the
	// add-on's own manifests alone. The default is
	// open-cluster-management-agent-addon.
	// +optional
	// +kubebuilder:default=open-cluster-management-agent-addon
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	AgentInstallNamespace *string `json:"agentInstallNamespace,omitempty"`

	// resourceRequirements are the requests and limits of containers.
	// +optional
	// +listType=map
	// +listMapKey=containerID
	ResourceRequirements []ContainerResourceRequirements `json:"resourceRequirements,omitempty"`
}

// CustomizedVariable is a value that an add-on may use by name.
type CustomizedVariable struct {
	// name of the variable, at most 255 letters, digits and underscores; the first
	// is not a digit.
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][_a-zA-Z0-9]*$`
	Name string `json:"name"`

	// value of the variable, at most 1024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// NodePlacement says on which nodes an agent runs.
type NodePlacement struct {
	// nodeSelector holds the labels that a node must carry. Absent means every
	// node.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations let the agent run on tainted nodes. Absent means none.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// ImageMirror replaces the registry that images come from.
type ImageMirror struct {
	// mirror is the registry, with path if need be, that images come from instead.
	// +required
	Mirror string `json:"mirror"`

	// source is the registry, with path if need be, that is replaced. Absent means
	// every registry.
	// +optional
	Source string `json:"source,omitempty"`
}

// ProxyConfig is the proxy that an agent uses.
type ProxyConfig struct {
	// httpProxy is the address of the proxy for http.
	// +optional
	HTTPProxy string `json:"httpProxy,omitempty"`

	// httpsProxy is the address of the proxy for https.
	// +optional
	HTTPSProxy string `json:"httpsProxy,omitempty"`

	// caBundle holds the PEM certificates that verify the proxy.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`

	// noProxy lists, with commas between them, the hosts and networks that are
	// reached without the proxy.
	// +optional
	NoProxy string `json:"noProxy,omitempty"`
}

// ContainerResourceRequirements are the requests and limits of containers.
type ContainerResourceRequirements struct {
	// containerID selects containers as kind:name:container. The kind is the
	// plural of a workload, or * for all; name and container are regular
	// expressions.
	// +required
	// +kubebuilder:validation:Pattern=`^(deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\*):.+:.+$`
	ContainerID string `json:"containerID"`

	// resources are the requests and limits.
	// +required
	Resources corev1.ResourceRequirements `json:"resources"`
}

// AddOnDeploymentConfigList is a list of AddOnDeploymentConfigs.
//
// +kubebuilder:object:root=true
type AddOnDeploymentConfigList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the AddOnDeploymentConfigs.
	Items []AddOnDeploymentConfig `json:"items"`
}
