// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupName and Version name the API, and GroupVersion is both.
const (
	GroupName = "connect.open-cluster-management.io"
	Version   = "v1alpha1"
	// APIService is the name of the APIService.
	APIService = Version + "." + GroupName
)

// GroupVersion is the version of the group that is served.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: Version}

// GateClusterProxy is the feature gate of both sides: in the registration configuration of a
// ClusterManager it serves the API, in that of a Klusterlet it opens the tunnel. It is off by
// default.
const GateClusterProxy = "ClusterProxy"

// Resources and their subresource, which has this name because API servers do not end requests
// to a subresource proxy after a minute.
const (
	ResourceManagedClusters = "managedclusters"
	ResourceTunnels         = "tunnels"
	SubresourceProxy        = "proxy"
)

// Paths of the API. The name of a cluster, SuffixProxy and, for managedclusters, a path of the
// managed cluster's API follow.
const (
	PathVersion         = "/apis/" + GroupName + "/" + Version
	PathManagedClusters = PathVersion + "/" + ResourceManagedClusters + "/"
	PathTunnels         = PathVersion + "/" + ResourceTunnels + "/"
	SuffixProxy         = "/" + SubresourceProxy
)

// ServerPath returns the path that a kubeconfig adds to the address of the hub's API server, to
// reach the API of a managed cluster.
func ServerPath(cluster string) string { return PathManagedClusters + cluster + SuffixProxy }

// RoleProxy is the ClusterRole with which a user reaches the APIs of all managed clusters. It is
// bound to nobody. A role for some clusters names them in resourceNames.
const RoleProxy = "open-cluster-management:managedclusters:proxy"

// The condition of a ManagedCluster that tells whether the hub holds a tunnel to it, as seen by
// the hub. It exists only while the hub's gate is on and the cluster is accepted.
const (
	ConditionTunnelConnected = "TunnelConnected"
	// ReasonTunnelConnected goes with True.
	ReasonTunnelConnected = "TunnelConnected"
	// ReasonTunnelDisconnected goes with False: there was a tunnel.
	ReasonTunnelDisconnected = "TunnelDisconnected"
	// ReasonTunnelNeverConnected goes with False: no agent has ever opened one.
	ReasonTunnelNeverConnected = "TunnelNeverConnected"
)

// HeaderError is set on every answer that the hub or the agent makes itself, instead of the API
// server of the managed cluster. It has the type of the cause, which is also in the Status.
const HeaderError = "Ocm-Proxy-Error"

// Types of the causes in details.causes of an answer's Status.
const (
	// CauseInvalidPath goes with 400.
	CauseInvalidPath = "InvalidPath"
	// CauseNotFrontProxy goes with 401: the request did not come through the hub's API server.
	CauseNotFrontProxy = "NotFrontProxy"
	// CauseAnonymousUser goes with 403: nobody reaches a managed cluster without a name.
	CauseAnonymousUser = "AnonymousUser"
	// CauseOtherCluster goes with 403: only the agent of the cluster may open its tunnel.
	CauseOtherCluster = "OtherCluster"
	// CauseIdentityRefused goes with 403: the agent acts for no such user.
	CauseIdentityRefused = "IdentityRefused"
	// CauseUnknownCluster goes with 404.
	CauseUnknownCluster = "UnknownCluster"
	// CauseTooManyStreams goes with 429.
	CauseTooManyStreams = "TooManyStreams"
	// CauseTunnelBroken goes with 502.
	CauseTunnelBroken = "TunnelBroken"
	// CauseRedirected goes with 502: the managed cluster answered with a redirect, which the
	// client would follow on the hub.
	CauseRedirected = "Redirected"
	// CauseNotAccepted goes with 503, and with 403 where the agent asks.
	CauseNotAccepted = "NotAccepted"
	// CauseNoTunnel goes with 503.
	CauseNoTunnel = "NoTunnel"
)
