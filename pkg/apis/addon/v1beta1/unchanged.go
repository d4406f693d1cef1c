// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// AddOnDeploymentConfig configures how the agent of an add-on is deployed on
// managed clusters: variables, nodes, images, proxy, namespace and resources. It
// has the same fields as in version v1alpha1.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addondeploymentconfigs,scope=Namespaced
type AddOnDeploymentConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the configuration.
	// +required
	Spec addonv1alpha1.AddOnDeploymentConfigSpec `json:"spec"`
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

// AddOnTemplate holds the manifests and the registration of an add-on, so that
// it needs no controller of its own. It has the same fields as in version
// v1alpha1.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addontemplates,scope=Cluster
// +kubebuilder:printcolumn:name="ADDON NAME",type=string,JSONPath=`.spec.addonName`
type AddOnTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the template.
	// +required
	Spec addonv1alpha1.AddOnTemplateSpec `json:"spec"`
}

// AddOnTemplateList is a list of AddOnTemplates.
//
// +kubebuilder:object:root=true
type AddOnTemplateList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the AddOnTemplates.
	Items []AddOnTemplate `json:"items"`
}
