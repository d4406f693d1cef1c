// SPDX-License-Identifier: Apache-2.0

package v1

// Join tokens: each one is a TokenRequest of the account BootstrapServiceAccount that is
// bound to its own Secret in the namespace of the hub process, so that deleting the Secret
// invalidates the token. The Secret carries LabelJoinToken and the keys below; it never
// holds the token.
const (
	// LabelJoinToken on a Secret holds the id of the join token it stands for.
	LabelJoinToken = "open-cluster-management.io/join-token"
	// JoinTokenKeyCredentialID is the key of what the API server writes into
	// ExtraCredentialID of every request made with the token: "JTI=" and a UUID.
	JoinTokenKeyCredentialID = "credential-id"
	// JoinTokenKeyCluster is the key of the one cluster that the token is for;
	// absent or empty means any.
	JoinTokenKeyCluster = "cluster"
	// JoinTokenKeyExpiration is the key of the token's expiration time, in RFC 3339 format.
	JoinTokenKeyExpiration = "expiration"
	// JoinTokenKeyUses is the key of how many clusters may join with the token, a
	// number from 1 to MaxJoinTokenUses; absent means any number.
	JoinTokenKeyUses = "uses"
	// MaxJoinTokenUses is the highest such limit.
	MaxJoinTokenUses = 10000
	// ExtraCredentialID is the extra key of a requester's user information that
	// names the token it used.
	ExtraCredentialID = "authentication.kubernetes.io/credential-id"
	// GroupPrefixBootstrapCluster, followed by the name of a cluster, is the extra
	// group of a bootstrap token that is for that cluster only.
	GroupPrefixBootstrapCluster = GroupBootstrap + ":"
)

// AnnotationHubID on the Secret that holds an agent's access names the hub that gave it the
// certificate. It stays the same when the hub gets another address or authority, and
// identifies what was created for which hub.
const AnnotationHubID = "agent.open-cluster-management.io/hub-id"

// Reasons of the denial of a certificate request for the join token that it was
// sent with.
const (
	// ReasonTokenForAnotherCluster means that the token is for one cluster and the request
	// for another.
	ReasonTokenForAnotherCluster = "TokenForAnotherCluster"
	// ReasonTokenRevoked means that the token was revoked before the request was
	// answered.
	ReasonTokenRevoked = "TokenRevoked"
	// ReasonTokenExpired means that the request was sent after the token expired.
	ReasonTokenExpired = "TokenExpired"
	// ReasonTokenUsedUp means that the token's limit of clusters has already joined with
	// it.
	ReasonTokenUsedUp = "TokenUsedUp"
)

// TaintCordoned is the key of the taint that keeps placements from selecting a cluster
// while somebody works on it.
const TaintCordoned = "cluster.open-cluster-management.io/cordoned"
