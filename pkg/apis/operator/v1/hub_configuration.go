// SPDX-License-Identifier: Apache-2.0

package v1

// RegistrationHubConfiguration refines registration on the hub.
type RegistrationHubConfiguration struct {
	// autoApproveUsers are users whose requests to join are approved without an
	// administrator. They are ignored unless the gate ManagedClusterAutoApproval is
	// enabled.
	// +optional
	AutoApproveUsers []string `json:"autoApproveUsers,omitempty"`

	// featureGates switch features of registration. Those not named have their
	// default.
	// +optional
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// registrationDrivers are the ways in which clusters may join. Absent means
	// csr.
	// +optional
	// +listType=map
	// +listMapKey=authType
	RegistrationDrivers []RegistrationDriverHub `json:"registrationDrivers,omitempty"`

	// importerConfiguration refines the import of clusters of Cluster API.
	// +optional
	ImporterConfiguration *ImporterConfiguration `json:"importerConfiguration,omitempty"`
}

// RegistrationDriverHub is one way in which clusters may join.
type RegistrationDriverHub struct {
	// authType is csr for client certificates, awsirsa for AWS identities, or grpc for the
	// gRPC server. The default is csr.
	// +required
	// +kubebuilder:default=csr
	// +kubebuilder:validation:Enum=csr;awsirsa;grpc
	AuthType string `json:"authType,omitempty"`

	// csr refines the driver csr.
	// +optional
	CSR *CSRConfig `json:"csr,omitempty"`

	// awsirsa refines the driver awsirsa.
	// +optional
	AwsIrsa *AwsIrsaConfig `json:"awsirsa,omitempty"`

	// grpc refines the driver grpc.
	// +optional
	GRPC *GRPCRegistrationConfig `json:"grpc,omitempty"`
}

// Registration drivers, values of authType.
const (
	// AuthTypeCSR joins with client certificates.
	AuthTypeCSR = "csr"
	// AuthTypeAwsIrsa joins with AWS identities.
	AuthTypeAwsIrsa = "awsirsa"
	// AuthTypeGRPC joins through the gRPC server.
	AuthTypeGRPC = "grpc"
)

// CSRConfig refines the driver csr.
type CSRConfig struct {
	// autoApprovedIdentities are users whose requests to join are approved
	// without an administrator.
	// +optional
	AutoApprovedIdentities []string `json:"autoApprovedIdentities,omitempty"`
}

// AwsIrsaConfig refines the driver awsirsa.
type AwsIrsaConfig struct {
	// hubClusterArn is the ARN of the hub,
	// arn:aws:eks:region:account:cluster/name.
	// +optional
	// +kubebuilder:validation:Pattern=`^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$`
	HubClusterArn string `json:"hubClusterArn,omitempty"`

	// autoApprovedIdentities are patterns of ARNs of clusters that are accepted
	// without an administrator.
	// +optional
	AutoApprovedIdentities []string `json:"autoApprovedIdentities,omitempty"`

	// tags, each key=value, are set on what is created in AWS.
	// +optional
	Tags []string `json:"tags,omitempty"`
}

// GRPCRegistrationConfig refines the driver grpc.
type GRPCRegistrationConfig struct {
	// autoApprovedIdentities are users whose requests to join are approved
	// without an administrator.
	// +optional
	AutoApprovedIdentities []string `json:"autoApprovedIdentities,omitempty"`
}

// ImporterConfiguration refines the import of clusters of Cluster API.
type ImporterConfiguration struct {
	// renderers build the configuration of an imported cluster, in this order.
	// +optional
	Renderers []string `json:"renderers,omitempty"`
}

// WorkConfiguration refines work distribution on the hub.
type WorkConfiguration struct {
	// featureGates switch features of work distribution. Those not named have
	// their default.
	// +optional
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// workDriver is how works reach the agents: kube through the API server of the hub,
	// mqtt or grpc through a broker. The default is kube.
	// +optional
	// +kubebuilder:default=kube
	// +kubebuilder:validation:Enum=kube;mqtt;grpc
	WorkDriver string `json:"workDriver,omitempty"`
}

// PlacementConfiguration refines placement.
type PlacementConfiguration struct {
	// featureGates switch features of placement. Those not named have their
	// default.
	// +optional
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`
}

// AddOnManagerConfiguration refines the add-on manager.
type AddOnManagerConfiguration struct {
	// featureGates switch features of the add-on manager. Those not named have
	// their default.
	// +optional
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`
}

// ServerConfiguration refines the gRPC server.
type ServerConfiguration struct {
	// featureGates switch features of the server. Those not named have their
	// default.
	// +optional
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// imagePullSpec is the image of the server.
	// +optional
	ImagePullSpec string `json:"imagePullSpec,omitempty"`

	// endpointsExposure says how agents reach the server.
	// +optional
	EndpointsExposure []EndpointExposure `json:"endpointsExposure,omitempty"`
}

// EndpointExposure is one way in which agents reach the server.
type EndpointExposure struct {
	// protocol is grpc or https. The default is grpc.
	// +required
	// +kubebuilder:default=grpc
	// +kubebuilder:validation:Enum=grpc;https
	Protocol string `json:"protocol,omitempty"`

	// usage says what the endpoint is for.
	// +optional
	Usage string `json:"usage,omitempty"`

	// grpc is the endpoint when protocol is grpc.
	// +optional
	GRPC *Endpoint `json:"grpc,omitempty"`

	// https is the endpoint when protocol is https.
	// +optional
	HTTPS *Endpoint `json:"https,omitempty"`
}

// Endpoint says under which address a server is reached.
type Endpoint struct {
	// type is hostname for a given host, loadBalancer for a Service of type
	// LoadBalancer, or route for a Route of OpenShift. The default is hostname.
	// +required
	// +kubebuilder:default=hostname
	// +kubebuilder:validation:Enum=hostname;loadBalancer;route
	Type string `json:"type,omitempty"`

	// hostname is the address when type is hostname.
	// +optional
	Hostname *HostnameConfig `json:"hostname,omitempty"`

	// loadBalancer is the address when type is loadBalancer.
	// +optional
	LoadBalancer *LoadBalancerConfig `json:"loadBalancer,omitempty"`

	// route is the address when type is route.
	// +optional
	Route *RouteConfig `json:"route,omitempty"`
}

// HostnameConfig is an address under a given host.
type HostnameConfig struct {
	// host is the host name.
	// +required
	Host string `json:"host"`

	// caBundle holds the PEM certificates that verify the address.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// LoadBalancerConfig is an address of a load balancer.
type LoadBalancerConfig struct {
	// host is the host name of the load balancer; absent means the one that it
	// reports.
	// +optional
	Host string `json:"host,omitempty"`

	// caBundle holds the PEM certificates that verify the address.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// RouteConfig is an address of a Route of OpenShift.
type RouteConfig struct {
	// host is the host name of the Route; absent means the one that it reports.
	// +optional
	Host string `json:"host,omitempty"`

	// caBundle holds the PEM certificates that verify the address.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}
