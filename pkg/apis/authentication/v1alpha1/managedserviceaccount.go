// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedServiceAccount asks for a ServiceAccount on a managed cluster and for a token of it
// in a Secret on the hub. It belongs in the namespace of the cluster on the hub; the Secret
// and the ServiceAccount have its name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=managedserviceaccounts,scope=Namespaced
// +kubebuilder:subresource:status
type ManagedServiceAccount struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how long tokens are valid, and how long the account is kept.
	Spec ManagedServiceAccountSpec `json:"spec,omitempty"`

	// status says where the token is and until when it is valid.
	// +optional
	Status ManagedServiceAccountStatus `json:"status,omitzero"`
}

// ManagedServiceAccountSpec says how long tokens are valid, and how long the account is kept.
type ManagedServiceAccountSpec struct {
	// rotation says how long each token is valid; {} means the defaults.
	// +required
	Rotation ManagedServiceAccountRotation `json:"rotation"`

	// ttlSecondsAfterCreation is how many seconds after its creation the hub deletes the
	// ManagedServiceAccount, and with it the account and the token. Without it nothing is
	// deleted. The hub honours it while its feature gate
	// ManagedServiceAccountEphemeralIdentity is enabled.
	// +optional
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterCreation *int32 `json:"ttlSecondsAfterCreation,omitempty"`
}

// ManagedServiceAccountRotation says how long each token is valid.
type ManagedServiceAccountRotation struct {
	// enabled has no effect: a token is always renewed when four fifths of its life are over.
	// +optional
	// +kubebuilder:default=true
	Enabled bool `json:"enabled,omitempty"`

	// validity is the lifetime to ask for, at least 10m. The cluster may grant another one,
	// which is then the one that counts.
	// +optional
	// +kubebuilder:default="8640h0m0s"
	Validity metav1.Duration `json:"validity,omitempty"`
}

// ManagedServiceAccountStatus says where the token is and until when it is valid.
type ManagedServiceAccountStatus struct {
	// conditions hold SecretCreated and TokenReported.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// expirationTimestamp is when the token in the Secret ends, as the cluster granted it.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`

	// tokenSecretRef names the Secret with the token, in the same namespace.
	// +optional
	TokenSecretRef *SecretRef `json:"tokenSecretRef,omitempty"`
}

// SecretRef names a Secret with a token.
type SecretRef struct {
	// name of the Secret.
	// +required
	Name string `json:"name"`

	// lastRefreshTimestamp is when the token in the Secret was issued.
	// +required
	LastRefreshTimestamp metav1.Time `json:"lastRefreshTimestamp"`
}

// ManagedServiceAccountList is a list of ManagedServiceAccounts.
//
// +kubebuilder:object:root=true
type ManagedServiceAccountList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ManagedServiceAccounts.
	Items []ManagedServiceAccount `json:"items"`
}
