// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of the conditions that the hub writes. Contract: addon.md, section 3.
const (
	// ReasonConfigurationsConfigured goes with ConditionConfigured True.
	ReasonConfigurationsConfigured = "ConfigurationsConfigured"
	// ReasonConfigurationsNotConfigured goes with ConditionConfigured False: the
	// cluster waits for its turn.
	ReasonConfigurationsNotConfigured = "ConfigurationsNotConfigured"
	// ReasonProgressing goes with ConditionProgressing True.
	ReasonProgressing = "Progressing"
	// ReasonCompleted goes with ConditionProgressing False: what is desired is
	// applied.
	ReasonCompleted = "Completed"
	// ReasonFailed goes with ConditionProgressing False.
	ReasonFailed = "Failed"
	// ReasonConfigurationUnsupported goes with ConditionProgressing False: the
	// cluster names a configuration that the add-on does not read.
	ReasonConfigurationUnsupported = "ConfigurationUnsupported"
	// ReasonWaitingForManifestApplied goes with ConditionProgressing False: nobody
	// has said yet what becomes of the manifests.
	ReasonWaitingForManifestApplied = "WaitingForManifestApplied"
	// ReasonWaitingForHostingManifestApplied is the same of the hosting cluster.
	ReasonWaitingForHostingManifestApplied = "WaitingForHostingManifestApplied"
)

// AnnotationPrefixExclude, before the name of an add-on, makes the key of an
// annotation of a ManagedCluster: install strategies leave the cluster out,
// whatever the value. It is not among those that are copied to add-ons. The
// contract has no such thing.
const AnnotationPrefixExclude = "exclude-addon.open-cluster-management.io/"

// Names of the ManifestWorks that hold hooks begin with WorkNamePrefix, the name
// of the add-on and WorkSuffixPreDelete. Contract: addon.md, section 5.2.
const (
	WorkNamePrefix      = "addon-"
	WorkSuffixPreDelete = "-pre-delete"
)

// Kinds of configuration of this group, by resource. Contract: addon.md, section
// 2.1.
const (
	ResourceDeploymentConfig = "addondeploymentconfigs"
	ResourceTemplate         = "addontemplates"
)
