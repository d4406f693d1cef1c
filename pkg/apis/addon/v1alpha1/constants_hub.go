// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

// Reasons of the conditions that the hub writes.
const (
	// ReasonConfigurationsConfigured goes with ConditionConfigured True.
	ReasonConfigurationsConfigured = "ConfigurationsConfigured"
	// ReasonConfigurationsNotConfigured goes with ConditionConfigured False: the
	// cluster waits for its turn.
	ReasonConfigurationsNotConfigured = "ConfigurationsNotConfigured"
	// ReasonProgressing goes with ConditionProgressing True.
	ReasonProgressing = "Progressing"
	// ReasonCompleted goes with ConditionProgressing False: the desired configurations are
	// applied.
	ReasonCompleted = "Completed"
	// ReasonFailed goes with ConditionProgressing False.
	ReasonFailed = "Failed"
	// ReasonConfigurationUnsupported goes with ConditionProgressing False: the
	// cluster names a configuration that the add-on does not read.
	ReasonConfigurationUnsupported = "ConfigurationUnsupported"
	// ReasonWaitingForManifestApplied goes with ConditionProgressing False: the state of
	// the manifests has not been reported yet.
	ReasonWaitingForManifestApplied = "WaitingForManifestApplied"
	// ReasonWaitingForHostingManifestApplied is the same for the hosting cluster.
	ReasonWaitingForHostingManifestApplied = "WaitingForHostingManifestApplied"
)

// AnnotationPrefixExclude, before the name of an add-on, makes the key of an annotation of
// a ManagedCluster: install strategies leave the cluster out, whatever the value. It is not
// copied to add-ons. It is not part of the contract.
const AnnotationPrefixExclude = "exclude-addon.open-cluster-management.io/"

// Resuming a rollout that has stopped. This is not part of the contract, where the only way
// is to raise maxFailures in the spec, which mandatory groups do not have.
const (
	// AnnotationResumeRollout on a ClusterManagementAddOn asks that its rollouts continue
	// without the clusters that have exceeded their deadline. Each new value is a new
	// request, of which MaxResumeRequest bytes count; its time is that of the hub's clock.
	AnnotationResumeRollout = "resume-rollout.open-cluster-management.io/addon"
	// MaxResumeRequest is how many bytes of a request distinguish it from others.
	MaxResumeRequest = 64
	// ConditionResumed of an install progression forgives the failures before its
	// lastTransitionTime.
	ConditionResumed = "Resumed"
	// ReasonResumeRequested goes with ConditionResumed True.
	ReasonResumeRequested = "Requested"
	// MessageResumed begins the message of ConditionResumed; the request follows.
	MessageResumed = "Asked for by " + AnnotationResumeRollout + ": "
	// MessageRolloutStopped ends the message of ConditionProgressing of an install
	// progression while too many clusters have exceeded their deadline.
	MessageRolloutStopped = " More are out of time than maxFailures allows, no further one is started."
)

// ResumedBy is the message of ConditionResumed for a value of AnnotationResumeRollout,
// as the API server gives it back: valid UTF-8.
func ResumedBy(request string) string {
	return MessageResumed + strings.ToValidUTF8(request[:min(len(request), MaxResumeRequest)], "")
}

// Names of the ManifestWorks that hold hooks begin with WorkNamePrefix, the name of
// the add-on and WorkSuffixPreDelete.
const (
	WorkNamePrefix      = "addon-"
	WorkSuffixPreDelete = "-pre-delete"
)

// Kinds of configuration of this group, by resource.
const (
	ResourceDeploymentConfig = "addondeploymentconfigs"
	ResourceTemplate         = "addontemplates"
)
