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
	ResourceClusterServices = "clusterservices"
	// ResourceManagedServiceAccounts is in the namespace of a cluster.
	ResourceManagedServiceAccounts = "managedserviceaccounts"
	ResourceTunnels                = "tunnels"
	SubresourceProxy               = "proxy"
)

// Paths of the API. The name of a cluster and SuffixProxy follow; for managedclusters, then a path of
// the managed cluster's API; for clusterservices, then a slash, a namespace, a slash, a Service as
// NAME:PORT, http:NAME:PORT or https:NAME:PORT, and a path of the Service. After PathNamespaces and the
// name of a cluster come ResourceManagedServiceAccounts, the name of the account, SuffixProxy and a path
// of the managed cluster's API.
const (
	PathVersion         = "/apis/" + GroupName + "/" + Version
	PathManagedClusters = PathVersion + "/" + ResourceManagedClusters + "/"
	PathClusterServices = PathVersion + "/" + ResourceClusterServices + "/"
	PathNamespaces      = PathVersion + "/namespaces/"
	PathTunnels         = PathVersion + "/" + ResourceTunnels + "/"
	SuffixProxy         = "/" + SubresourceProxy
)

// ServerPath returns the path that a kubeconfig adds to the address of the hub's API server, to
// reach the API of a managed cluster.
func ServerPath(cluster string) string { return PathManagedClusters + cluster + SuffixProxy }

// AccountPath is ServerPath for a client that acts as a ManagedServiceAccount of the cluster.
func AccountPath(cluster, account string) string {
	return PathNamespaces + cluster + "/" + ResourceManagedServiceAccounts + "/" + account + SuffixProxy
}

// ServicePath returns the path of a Service of a managed cluster, which is named as
// NAMESPACE/http:NAME:PORT or NAMESPACE/https:NAME:PORT.
func ServicePath(cluster, service string) string {
	return PathClusterServices + cluster + SuffixProxy + "/" + service
}

// RoleProxy is the ClusterRole with which a user reaches the APIs of all managed clusters. It is
// bound to nobody. A role for some clusters names them in resourceNames.
const RoleProxy = "open-cluster-management:managedclusters:proxy"

// What an agent says in its hello that serves requests for Services, or in the name of
// ManagedServiceAccounts.
const (
	ServesServices = "services"
	ServesAccounts = "accounts"
)

// What a managed cluster exposes of its Services, in the namespace of its agent.
const (
	// ConfigMapExposedServices has, below any keys, YAML lists of entries with namespace, service,
	// port and protocol. Without a port or protocol an entry means any; what no entry names is not
	// exposed.
	ConfigMapExposedServices = "cluster-proxy-exposed-services"
	// ConfigMapServiceCA has, below KeyServiceCA, the authorities of Services with https, besides that
	// of the cluster.
	ConfigMapServiceCA = "cluster-proxy-service-ca"
	KeyServiceCA       = "service-ca.crt"
	// EventInvalidExposedServices is the reason of an Event about an edit of ConfigMapExposedServices
	// that cannot be read. The list before it stays in effect.
	EventInvalidExposedServices = "InvalidExposedServices"
)

// GroupVersionAddOn is that of the kinds of the add-on cluster-proxy, which leads to clusters in a way of
// its own and is no part of this program.
var GroupVersionAddOn = schema.GroupVersion{Group: "proxy.open-cluster-management.io", Version: "v1alpha1"}

// Names of that add-on.
const (
	// ResourceProxyConfigurations are its settings, of which one object has an effect, NameProxyConfiguration.
	ResourceProxyConfigurations = "managedproxyconfigurations"
	NameProxyConfiguration      = "cluster-proxy"
	// NamespaceAddOn is where it runs on the hub, and has its own list ConfigMapExposedServices, if
	// spec.proxyServer.namespace names no other namespace.
	NamespaceAddOn = "open-cluster-management-cluster-proxy"
	// ResourceProxyResolvers exposed Services in its older releases. No release in use reads them.
	ResourceProxyResolvers = "managedproxyserviceresolvers"
)

// RoleAccounts is the ClusterRole with which a user, by a RoleBinding in the namespace of a cluster, acts as
// all ManagedServiceAccounts of that cluster. It is bound to nobody. A role for some accounts names
// them in resourceNames.
const RoleAccounts = "open-cluster-management:managedserviceaccounts:proxy"

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
	// CauseServiceNotExposed goes with 403: the managed cluster does not list the Service.
	CauseServiceNotExposed = "ServiceNotExposed"
	// CauseServiceRefused goes with 403: the agent dials no such Service, whoever lists it.
	CauseServiceRefused = "ServiceRefused"
	// CauseAccountRefused goes with 403: the agent does not act as that ServiceAccount, because it
	// was not made for a ManagedServiceAccount of this hub.
	CauseAccountRefused = "AccountRefused"
	// CauseUnknownCluster goes with 404.
	CauseUnknownCluster = "UnknownCluster"
	// CauseUnknownService goes with 404: there is no such Service, or it has no such port.
	CauseUnknownService = "UnknownService"
	// CauseUnknownAccount goes with 404: the cluster has no such ServiceAccount, or not yet.
	CauseUnknownAccount = "UnknownAccount"
	// CauseTooManyStreams goes with 429.
	CauseTooManyStreams = "TooManyStreams"
	// CauseServicesNotServed goes with 501: the agent runs where it does not reach the Services of its
	// cluster.
	CauseServicesNotServed = "ServicesNotServed"
	// CauseServiceUnreachable goes with 502: the Service does not answer, or its certificate is that
	// of another authority.
	CauseServiceUnreachable = "ServiceUnreachable"
	// CauseTunnelBroken goes with 502.
	CauseTunnelBroken = "TunnelBroken"
	// CauseRedirected goes with 502: the managed cluster answered with a redirect, which the
	// client would follow on the hub.
	CauseRedirected = "Redirected"
	// CauseNotAccepted goes with 503, and with 403 where the agent asks.
	CauseNotAccepted = "NotAccepted"
	// CauseNoTunnel goes with 503.
	CauseNoTunnel = "NoTunnel"
	// CauseNoLeader goes with 503: of several processes of the hub, none leads yet.
	CauseNoLeader = "NoLeader"
	// CauseAgentTooOld goes with 501: the agent of the cluster does not know what is asked.
	CauseAgentTooOld = "AgentTooOld"
)
