// SPDX-License-Identifier: Apache-2.0

package v1

// Annotations of a ManagedCluster that only this project's hub writes. They are not part of
// the contract; OCM ignores them.
const (
	// AnnotationCreator holds the name of the user who created the ManagedCluster.
	// Admission sets it at creation and refuses every later change; automatic acceptance
	// trusts nothing else.
	AnnotationCreator = "registration.open-cluster-management.io/creator"
	// AnnotationAgentName holds the agent name in the last certificate issued for the
	// cluster, which identifies the agent that holds the cluster name.
	AnnotationAgentName = "registration.open-cluster-management.io/agent-name"
	// AnnotationCertificateExpires holds when that certificate expires, in RFC 3339 format.
	AnnotationCertificateExpires = "registration.open-cluster-management.io/certificate-expires"
	// AnnotationJoinedBy holds the id of the join token with which the last certificate was
	// requested, unless it was a renewal.
	AnnotationJoinedBy = "registration.open-cluster-management.io/joined-by"
	// AnnotationAdoptedNamespace holds the UID of a namespace that existed before the
	// cluster was accepted and that the accepting user may update. Only admission can set
	// it.
	AnnotationAdoptedNamespace = "registration.open-cluster-management.io/adopted-namespace"
)

// AnnotationIntent on an object that the hub wrote holds a hash of what it wrote, so that a
// restarted hub does not write it again.
const AnnotationIntent = "registration.open-cluster-management.io/intent"

// ConditionCertificateRequestDenied is True while the last request of a cluster's agent for
// a certificate was denied, or could not be signed; the message names the request, who or
// what refused it, and what to do. It is False once a later request has been issued a
// certificate, and absent if no request ever failed. It is not part of the contract.
const ConditionCertificateRequestDenied = "CertificateRequestDenied"

// Reasons of ConditionCertificateRequestDenied.
const (
	// ReasonRequestDenied goes with True: the request was denied.
	ReasonRequestDenied = "RequestDenied"
	// ReasonRequestFailed goes with True: the signer refused an approved request.
	ReasonRequestFailed = "SigningFailed"
	// ReasonRequestNotSigned goes with True: no signer answered an approved request.
	ReasonRequestNotSigned = "NotSigned"
	// ReasonRequestIssued goes with False.
	ReasonRequestIssued = "CertificateIssued"
)

// Reasons in addition to those of the API's own controllers, for states that they do not
// report.
const (
	// ReasonNotAccepted goes with ConditionJoined False: the hub revoked the agent's
	// permissions.
	ReasonNotAccepted = "HubClusterAdminDenied"
	// ReasonCertificateExpired goes with ConditionJoined False: the agent has been away for
	// longer than the lifetime of its last certificate.
	ReasonCertificateExpired = "ClientCertificateExpired"
	// ReasonNoDuplicate goes with ConditionDuplicateClusterName False.
	ReasonNoDuplicate = "NameHeldByOneAgent"
)

// ClusterClaimsReported is this project's own condition of a ManagedCluster, written by the
// agent, and present only while something is missing.
const (
	// ConditionClaimsReported is False while claims or properties of the cluster
	// are left out of its status; the message names them.
	ConditionClaimsReported = "ClusterClaimsReported"
	// ReasonClaimsTruncated goes with ConditionClaimsReported False, and is the
	// reason of an Event: there are more claims than are reported.
	ReasonClaimsTruncated = "CustomClusterClaimsTruncated"
	// ReasonClaimsInvalid goes with ConditionClaimsReported False, and is the
	// reason of an Event: a value is empty or too long.
	ReasonClaimsInvalid = "ClusterClaimsInvalid"
)
