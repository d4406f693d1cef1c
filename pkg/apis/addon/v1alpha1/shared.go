// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AddOnMeta describes an add-on to people.
type AddOnMeta struct {
	// displayName is the display name of the add-on.
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// description says what the add-on does.
	// +optional
	Description string `json:"description,omitempty"`
}

// AddOnConfigCoordinates names a kind of configuration and one object of it, in the form
// used before supportedConfigs. It is ignored.
type AddOnConfigCoordinates struct {
	// crdName is the name of the CustomResourceDefinition of the configuration.
	// +optional
	CRDName string `json:"crdName,omitempty"`

	// crName is the name of the configuration object.
	// +optional
	CRName string `json:"crName,omitempty"`

	// lastObservedGeneration is the generation of the object that was last seen.
	// +optional
	LastObservedGeneration int64 `json:"lastObservedGeneration,omitempty"`
}

// ConfigGroupResource names a kind of configuration.
type ConfigGroupResource struct {
	// group of the configuration; empty, the default, is the core group.
	// +optional
	// +kubebuilder:default=""
	Group string `json:"group"`

	// resource is the plural name of the configuration, for example
	// addondeploymentconfigs.
	// +required
	// +kubebuilder:validation:MinLength=1
	Resource string `json:"resource"`
}

// ConfigReferent names one configuration object.
type ConfigReferent struct {
	// namespace of the object; empty for one without a namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// ConfigSpecHash names one configuration object and its content.
type ConfigSpecHash struct {
	ConfigReferent `json:",inline"`

	// specHash is the hash of the spec of the object. Empty means that the object
	// was not found or not hashed yet.
	// +optional
	SpecHash string `json:"specHash,omitempty"`
}

// AddOnConfig names a configuration object with its kind.
type AddOnConfig struct {
	ConfigGroupResource `json:",inline"`

	ConfigReferent `json:",inline"`
}

// DefaultConfigReference is the state of a default configuration.
type DefaultConfigReference struct {
	ConfigGroupResource `json:",inline"`

	// desiredConfig is the object to use.
	// +optional
	DesiredConfig *ConfigSpecHash `json:"desiredConfig,omitempty"`
}

// InstallConfigReference is the state of a configuration for the clusters of one
// placement.
type InstallConfigReference struct {
	ConfigGroupResource `json:",inline"`

	// desiredConfig is the object to use.
	// +optional
	DesiredConfig *ConfigSpecHash `json:"desiredConfig,omitempty"`

	// lastAppliedConfig is the object that every cluster used last.
	// +optional
	LastAppliedConfig *ConfigSpecHash `json:"lastAppliedConfig,omitempty"`

	// lastKnownGoodConfig is the object that every cluster last used with success.
	// +optional
	LastKnownGoodConfig *ConfigSpecHash `json:"lastKnownGoodConfig,omitempty"`
}

// HealthCheck says how the health of an add-on is determined.
type HealthCheck struct {
	// mode is Lease when the add-on renews a lease, or Customized when its own
	// controller sets the condition Available. The default is Lease.
	// +optional
	// +kubebuilder:default=Lease
	Mode HealthCheckMode `json:"mode,omitempty"`
}

// HealthCheckMode is how the health of an add-on is determined.
//
// +kubebuilder:validation:Enum=Lease;Customized
type HealthCheckMode string

// Ways to determine the health of an add-on.
const (
	// HealthCheckModeLease reads the lease of the add-on.
	HealthCheckModeLease HealthCheckMode = "Lease"
	// HealthCheckModeCustomized leaves it to the controller of the add-on.
	HealthCheckModeCustomized HealthCheckMode = "Customized"
)

// ObjectReference names an object that belongs to an add-on.
type ObjectReference struct {
	// group of the resource; empty is the core group.
	// +required
	Group string `json:"group"`

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

// DriverType is how an add-on gets its access to the API server of the hub.
//
// +kubebuilder:validation:Enum=csr;token
type DriverType string

// Ways to get access to the API server of the hub.
const (
	// DriverTypeCSR is a client certificate.
	DriverTypeCSR DriverType = "csr"
	// DriverTypeToken is a token of a ServiceAccount.
	DriverTypeToken DriverType = "token"
)
