// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterClaim is on a managed cluster and states one fact about it, for example its
// region. The agent copies claims to the status of the ManagedCluster on the hub, where
// placements select by them. A claim that carries the label
// open-cluster-management.io/spoke-only is not copied.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterclaims,scope=Cluster
// +kubebuilder:storageversion
type ClusterClaim struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is the name of the claim.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the value of the claim.
	// +optional
	Spec ClusterClaimSpec `json:"spec,omitempty"`
}

// ClusterClaimSpec is the content of a ClusterClaim.
type ClusterClaimSpec struct {
	// value of the claim, 1 to 1024 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// ClusterClaimList is a list of ClusterClaims.
//
// +kubebuilder:object:root=true
type ClusterClaimList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ClusterClaims.
	Items []ClusterClaim `json:"items"`
}

// LabelSpokeOnly on a ClusterClaim, with any value, keeps it on the managed
// cluster.
const LabelSpokeOnly = "open-cluster-management.io/spoke-only"

// Reserved names of claims: they come before all others and the limit does not apply to
// them.
const (
	// ClaimID holds the identity of the cluster.
	ClaimID = "id.k8s.io"
	// ClaimKubeVersion holds the version of Kubernetes.
	ClaimKubeVersion = "kubeversion.open-cluster-management.io"
	// ClaimPlatform holds the platform that the cluster runs on, for example AWS.
	ClaimPlatform = "platform.open-cluster-management.io"
	// ClaimProduct holds the Kubernetes product, for example EKS.
	ClaimProduct = "product.open-cluster-management.io"
)
