// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Defaults and limits of Settings.
const (
	// DefaultHealthPeriod is how often the health of the managed cluster's API server is
	// read.
	DefaultHealthPeriod = time.Minute
	// DefaultMaxClaims is the maximum number of custom claims reported.
	DefaultMaxClaims = 20
	// minCertificateSeconds is the shortest certificate lifetime that may be requested.
	minCertificateSeconds = 3600

	// DefaultHubTimeout is how long the hub in use, one of several, may be unreachable.
	DefaultHubTimeout = 10 * time.Minute

	maxSuffixes, maxSuffixLength = 10, 64
	// minHubs and maxHubs bound the number of hubs to choose from.
	minHubs, maxHubs = 2, 10
)

// ServerURL is an address of the managed cluster that the hub shows to users.
type ServerURL struct {
	// URL starts with https://.
	URL string
	// CABundle is the PEM bundle to verify it with; empty means the cluster's own.
	CABundle []byte
}

// Settings configure how an agent registers. The zero value registers under generated names.
type Settings struct {
	// ClusterName is the name on the hub; empty means the name kept from an earlier start, or
	// a random UUID.
	ClusterName string
	// AgentName is the second half of the certificate's common name; empty means the name
	// kept, or five random characters.
	AgentName string
	// WorkAgentID identifies the agent in AppliedManifestWorks; empty means AgentName.
	WorkAgentID string
	// ExternalServerURLs become the client configs of the ManagedCluster when it is created.
	ExternalServerURLs []ServerURL
	// Annotations are put on the ManagedCluster when it is created; all keys start with
	// agent.open-cluster-management.io.
	Annotations map[string]string
	// Labels are put on the ManagedCluster when it is created. The hub's admission decides
	// which labels an agent may choose.
	Labels map[string]string
	// CertificateSeconds is the certificate lifetime to request; 0 leaves it to the hub.
	CertificateSeconds int32
	// HealthPeriod is how often the health of the managed cluster's API server is read.
	HealthPeriod time.Duration
	// Claims is the feature gate ClusterClaim: report ClusterClaims.
	Claims bool
	// Properties is the feature gate ClusterProperty: report ClusterProperties.
	Properties bool
	// Proxy is the feature gate ClusterProxy: users of the hub reach the API of the managed
	// cluster through a tunnel.
	Proxy bool
	// MaxClaims limits the custom claims; reserved ones are always reported.
	MaxClaims int
	// ReservedSuffixes are name suffixes of further claims that count as reserved.
	ReservedSuffixes []string
	// AddOns is the feature gate AddonManagement: credentials and health of add-ons.
	AddOns bool
	// AddOnDriver is how add-ons get access to the hub's API server; empty means by
	// certificates.
	AddOnDriver addonv1alpha1.DriverType
	// AddOnTokenSeconds is the lifetime to request for tokens of add-ons; 0 means a year.
	AddOnTokenSeconds int64
	// EvictionGrace is how long the objects of a work are kept after it has disappeared from
	// the hub; 0 means the work agent's default.
	EvictionGrace time.Duration
	// RawFeedback is the feature gate RawFeedbackJsonString: feedback values of works may be
	// structured. MaxRawFeedback bounds such a value in bytes; 0 means as much as the API
	// allows.
	RawFeedback    bool
	MaxRawFeedback int
	// Workers is how many works are processed concurrently; 0 means the work agent's default.
	Workers int
	// BootstrapSecret is the name of the bootstrap secret; empty means
	// bootstrap-hub-kubeconfig.
	BootstrapSecret string
	// Hubs are the names of two to ten bootstrap secrets to choose from, in order of
	// preference; they replace BootstrapSecret.
	Hubs []string
	// HubTimeout is how long the hub in use may be unreachable before another of Hubs is
	// looked for.
	HubTimeout time.Duration
}

// Serving returns the settings without those that only matter for reaching a hub: changing
// these does not affect a running session.
func (s Settings) Serving() Settings {
	s.ExternalServerURLs, s.Annotations, s.Labels = nil, nil, nil
	s.BootstrapSecret, s.Hubs, s.HubTimeout = "", nil, 0
	return s
}

// KeepAnnotations returns the annotations an agent may set on its ManagedCluster.
func KeepAnnotations(in map[string]string) map[string]string {
	kept := maps.Clone(in)
	maps.DeleteFunc(kept, func(key, _ string) bool { return !strings.HasPrefix(key, clusterv1.AnnotationPrefixAgent) })
	return kept
}

// Validate returns the first problem in the settings, naming the setting.
func (s Settings) Validate() error {
	if s.ClusterName != "" {
		if problems := validation.IsDNS1123Label(s.ClusterName); len(problems) > 0 {
			return fmt.Errorf("cluster name %q: %s", s.ClusterName, strings.Join(problems, "; "))
		}
	}
	for _, e := range s.ExternalServerURLs {
		if u, err := url.Parse(e.URL); err != nil || u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("external server URL %q: must start with https://", e.URL)
		}
	}
	switch {
	case s.CertificateSeconds != 0 && s.CertificateSeconds < minCertificateSeconds:
		return fmt.Errorf("client certificate expiration of %d seconds: must be 0 or at least %d", s.CertificateSeconds, minCertificateSeconds)
	case s.HealthPeriod <= 0:
		return fmt.Errorf("cluster health check period %s: must be greater than 0", s.HealthPeriod)
	}
	return cmp.Or(s.validateLabels(), s.validateHubs(), s.validateAddOns(), s.validateClaims())
}

func (s Settings) validateLabels() error {
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(s.Labels[key])...); len(problems) > 0 {
			return fmt.Errorf("cluster label %q: %s", key, strings.Join(problems, "; "))
		}
	}
	return nil
}

func (s Settings) validateClaims() error {
	switch {
	case s.MaxClaims < 0:
		return fmt.Errorf("maximum of custom cluster claims %d: must not be negative", s.MaxClaims)
	case len(s.ReservedSuffixes) > maxSuffixes:
		return fmt.Errorf("reserved cluster claim suffixes: %d, at most %d are allowed", len(s.ReservedSuffixes), maxSuffixes)
	}
	for _, suffix := range s.ReservedSuffixes {
		if suffix == "" || len(suffix) > maxSuffixLength {
			return fmt.Errorf("reserved cluster claim suffix %q: must have 1 to %d characters", suffix, maxSuffixLength)
		}
	}
	return nil
}

func (s Settings) validateAddOns() error {
	switch {
	case s.AddOnDriver != "" && s.AddOnDriver != addonv1alpha1.DriverTypeCSR && s.AddOnDriver != addonv1alpha1.DriverTypeToken:
		return fmt.Errorf("add-on registration driver %q: must be csr or token", s.AddOnDriver)
	case s.AddOnTokenSeconds != 0 && s.AddOnTokenSeconds < addonv1alpha1.MinTokenSeconds:
		return fmt.Errorf("add-on token expiration of %d seconds: must be 0 or at least %d", s.AddOnTokenSeconds, addonv1alpha1.MinTokenSeconds)
	}
	return nil
}

func (s Settings) validateHubs() error {
	if isOwnSecret(s.BootstrapSecret) {
		return fmt.Errorf("bootstrap secret %q: the agent keeps its own access there", s.BootstrapSecret)
	}
	if len(s.Hubs) == 0 {
		return nil
	}
	if len(s.Hubs) < minHubs || len(s.Hubs) > maxHubs {
		return fmt.Errorf("bootstrap kubeconfigs to choose from: %d, must be %d to %d", len(s.Hubs), minHubs, maxHubs)
	}
	for i, name := range s.Hubs {
		switch {
		case len(validation.IsDNS1123Subdomain(name)) > 0:
			return fmt.Errorf("bootstrap kubeconfig %q: is not the name of a secret", name)
		case slices.Contains(s.Hubs[:i], name):
			return fmt.Errorf("bootstrap kubeconfig %q: is listed twice", name)
		case isOwnSecret(name):
			return fmt.Errorf("bootstrap kubeconfig %q: the agent keeps its own access there", name)
		}
	}
	if s.HubTimeout <= 0 {
		return fmt.Errorf("hub connection timeout %s: must be greater than 0", s.HubTimeout)
	}
	return nil
}

// isOwnSecret reports whether the agent itself writes the secret.
func isOwnSecret(secret string) bool {
	return secret == clusterv1.SecretHubKubeconfig || secret == clusterv1.SecretHubKubeconfigPending
}

// Identity is an agent's identity on a hub.
type Identity struct {
	// Cluster is the name of the ManagedCluster and its namespace.
	Cluster string
	// Agent distinguishes agents with the same cluster name.
	Agent string
}

// Known returns the identity without invalid names: a secret may contain anything.
func (i Identity) Known() Identity {
	if len(validation.IsDNS1123Label(i.Cluster)) > 0 {
		i.Cluster = ""
	}
	if len(validation.IsDNS1123Subdomain(i.Agent)) > 0 {
		i.Agent = ""
	}
	return i
}

// CommonName returns the subject's common name, which is the user name on the hub.
func (i Identity) CommonName() string { return clusterv1.UserPrefix + i.Cluster + ":" + i.Agent }

// Organizations returns the subject's organizations, which are the groups on the hub.
func (i Identity) Organizations() []string {
	return []string{clusterv1.UserPrefix + i.Cluster, clusterv1.GroupManagedClusters}
}
