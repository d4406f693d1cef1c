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
	// AnnotationAdoptedNamespace holds the UID of the namespace that was there
	// before the cluster was accepted, and that the accepting user may update.
	// Admission sets it; nobody else can.
	AnnotationAdoptedNamespace = "registration.open-cluster-management.io/adopted-namespace"
)

// AnnotationIntent on an object that the hub wrote holds a hash of what it
// wrote, so that a restarted hub need not write it again.
const AnnotationIntent = "registration.open-cluster-management.io/intent"

// Reasons beside those of registration.md 2.2, for states that the field's own
// controllers never show.
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
