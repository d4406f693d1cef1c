// SPDX-License-Identifier: Apache-2.0

package v1

// Annotations of a ManagedCluster that only the hub of this project writes. The
// contract does not know them; OCM ignores them.
const (
	// AnnotationCreator holds the user name of who created the ManagedCluster.
	// Admission sets it at creation and refuses every later change; automatic
	// acceptance trusts nothing else.
	AnnotationCreator = "registration.open-cluster-management.io/creator"
	// AnnotationAgentName holds the agent name of the last certificate that was
	// issued for the cluster: who holds the name.
	AnnotationAgentName = "registration.open-cluster-management.io/agent-name"
	// AnnotationCertificateExpires holds when that certificate ends, as RFC 3339.
	AnnotationCertificateExpires = "registration.open-cluster-management.io/certificate-expires"
	// AnnotationJoinedBy holds the id of the join token that the request of the last
	// certificate was sent with, where it was not a renewal.
	AnnotationJoinedBy = "registration.open-cluster-management.io/joined-by"
	// AnnotationAdoptedNamespace holds the UID of the namespace that was there
	// before the cluster was accepted, and that the accepting user may update.
	// Admission sets it; nobody else can.
	AnnotationAdoptedNamespace = "registration.open-cluster-management.io/adopted-namespace"
)

// AnnotationIntent on an object that the hub wrote holds a hash of what it
// wrote, so that a restarted hub need not write it again.
const AnnotationIntent = "registration.open-cluster-management.io/intent"

// ConditionCertificateRequestDenied is True while the last request of a cluster's
// agent for a certificate was denied, or could not be signed; the message names the
// request, who or what refused it, and what to do. It is False once a later request
// has got its certificate, and absent where no request ever failed. The contract
// does not know it.
const ConditionCertificateRequestDenied = "CertificateRequestDenied"

// Reasons of ConditionCertificateRequestDenied.
const (
	// ReasonRequestDenied goes with True: somebody denied the request.
	ReasonRequestDenied = "RequestDenied"
	// ReasonRequestFailed goes with True: the signer refused an approved request.
	ReasonRequestFailed = "SigningFailed"
	// ReasonRequestNotSigned goes with True: no signer answered an approved one.
	ReasonRequestNotSigned = "NotSigned"
	// ReasonRequestIssued goes with False.
	ReasonRequestIssued = "CertificateIssued"
)

// Reasons beside those of the API's own controllers, for states that they never show.
const (
	// ReasonNotAccepted goes with ConditionJoined False: the hub took the
	// agent's rights away.
	ReasonNotAccepted = "HubClusterAdminDenied"
	// ReasonCertificateExpired goes with ConditionJoined False: the agent has
	// been away for longer than its last certificate lives.
	ReasonCertificateExpired = "ClientCertificateExpired"
	// ReasonNoDuplicate goes with ConditionDuplicateClusterName False.
	ReasonNoDuplicate = "NameHeldByOneAgent"
)

// ClusterClaimsReported is this project's own condition of a ManagedCluster,
// written by the agent, and only there while something is missing.
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
