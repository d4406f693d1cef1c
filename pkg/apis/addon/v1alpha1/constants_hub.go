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

// Letting a rollout go on that has stopped. The contract has no such thing: there
// somebody has to raise maxFailures in the spec, and mandatory groups have none.
const (
	// AnnotationResumeRollout on a ClusterManagementAddOn asks that its rollouts go on
	// without the clusters that are out of time now. Any other value than before is a
	// new request, of which MaxResumeRequest bytes count; the hub's own clock tells when
	// it came.
	AnnotationResumeRollout = "resume-rollout.open-cluster-management.io/addon"
	// MaxResumeRequest is how much of a request is told from others.
	MaxResumeRequest = 64
	// ConditionResumed of an install progression says since when failures before are
	// forgiven: its lastTransitionTime.
	ConditionResumed = "Resumed"
	// ReasonResumeRequested goes with ConditionResumed True.
	ReasonResumeRequested = "Requested"
	// MessageResumed begins the message of ConditionResumed; the request follows.
	MessageResumed = "Asked for by " + AnnotationResumeRollout + ": "
	// MessageRolloutStopped ends the message of ConditionProgressing of an install
	// progression while too many clusters are out of time.
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
