// SPDX-License-Identifier: Apache-2.0

package agent

import (
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
	// DefaultHealthPeriod is how often the health of the own API server is read.
	DefaultHealthPeriod = time.Minute
	// DefaultMaxClaims is how many custom claims are reported at most.
	DefaultMaxClaims = 20
	// minCertificateSeconds is the shortest life of a certificate that may be
	// asked for.
	minCertificateSeconds = 3600

	// DefaultHubTimeout is how long a hub of several may give no sign of life.
	DefaultHubTimeout = 10 * time.Minute

	maxSuffixes, maxSuffixLength = 10, 64
	// minHubs and maxHubs bound a list of hubs to choose from.
	minHubs, maxHubs = 2, 10
)

// ServerURL is an address of the managed cluster that the hub shows to people.
type ServerURL struct {
	// URL starts with https://.
	URL string
	// CABundle is the PEM bundle to trust it by; empty means the cluster's own.
	CABundle []byte
}

// Settings tell an agent how to register. The zero value joins under names that
// are made up.
type Settings struct {
	// ClusterName is the name on the hub; empty means the one that was kept
	// from an earlier start, or a random UUID.
	ClusterName string
	// AgentName is the second half of the certificate's common name; empty
	// means the kept one, or five random characters.
	AgentName string
	// ExternalServerURLs become the client configs of the ManagedCluster when
	// it is created.
	ExternalServerURLs []ServerURL
	// Annotations are put on the ManagedCluster when it is created; all keys
	// start with agent.open-cluster-management.io.
	Annotations map[string]string
	// Labels are put on the ManagedCluster when it is created. Which of them an
	// agent may choose is up to the hub's admission.
	Labels map[string]string
	// CertificateSeconds is the life that is asked for; 0 leaves it to the hub.
	CertificateSeconds int32
	// HealthPeriod is how often the own API server's health is read.
	HealthPeriod time.Duration
	// Claims is the feature gate ClusterClaim: report ClusterClaims.
	Claims bool
	// Properties is the feature gate ClusterProperty: report ClusterProperties.
	Properties bool
	// MaxClaims limits the custom claims; reserved ones are always reported.
	MaxClaims int
	// ReservedSuffixes end the names of further claims that count as reserved.
	ReservedSuffixes []string
	// AddOns is the feature gate AddonManagement: credentials and health of
	// add-ons.
	AddOns bool
	// AddOnDriver is how add-ons get access to the API server of the hub; empty
	// means by certificates.
	AddOnDriver addonv1alpha1.DriverType
	// AddOnTokenSeconds is the life of the tokens of add-ons that is asked for; 0
	// means a year.
	AddOnTokenSeconds int64
	// EvictionGrace is how long objects of a work that the hub forgot are kept;
	// 0 means the work agent's default.
	EvictionGrace time.Duration
	// RawFeedback is the feature gate RawFeedbackJsonString: feedback values of
	// works may be structures. MaxRawFeedback bounds such a value in bytes; 0
	// means as much as the API allows.
	RawFeedback    bool
	MaxRawFeedback int
	// Workers is how many works are worked on at once; 0 means the work agent's
	// default.
	Workers int
	// BootstrapSecret is the name of the bootstrap secret; empty means
	// bootstrap-hub-kubeconfig.
	BootstrapSecret string
	// Hubs are the names of two to ten bootstrap secrets to choose from, in order
	// of preference, instead of the one.
	Hubs []string
	// HubTimeout is how long the hub in use may give no sign of life before
	// another one of Hubs is looked for.
	HubTimeout time.Duration
}

// Serving are the settings without those that only matter on the way to a hub:
// a change of the others does not concern what runs there.
func (s Settings) Serving() Settings {
	s.ExternalServerURLs, s.Annotations, s.Labels = nil, nil, nil
	s.BootstrapSecret, s.Hubs, s.HubTimeout = "", nil, 0
	return s
}

// KeepAnnotations returns the annotations that an agent may set on its
// ManagedCluster, and the sorted keys of those that it may not.
func KeepAnnotations(in map[string]string) (kept map[string]string, dropped []string) {
	for key, value := range in {
		if strings.HasPrefix(key, clusterv1.AnnotationPrefixAgent) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
			continue
		}
		dropped = append(dropped, key)
	}
	slices.Sort(dropped)
	return kept, dropped
}

// Validate tells what in the settings cannot work, naming the setting.
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
	if err := s.validateLabels(); err != nil {
		return err
	}
	if err := s.validateHubs(); err != nil {
		return err
	}
	if err := s.validateAddOns(); err != nil {
		return err
	}
	return s.validateClaims()
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
	if own(s.BootstrapSecret) {
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
		case own(name):
			return fmt.Errorf("bootstrap kubeconfig %q: the agent keeps its own access there", name)
		}
	}
	if s.HubTimeout <= 0 {
		return fmt.Errorf("hub connection timeout %s: must be greater than 0", s.HubTimeout)
	}
	return nil
}

// own tells whether a secret is one that the agent writes.
func own(secret string) bool {
	return secret == clusterv1.SecretHubKubeconfig || secret == clusterv1.SecretHubKubeconfigPending
}

// Identity is who an agent is on a hub.
type Identity struct {
	// Cluster is the name of the ManagedCluster and of its namespace.
	Cluster string
	// Agent tells agents of one cluster name apart.
	Agent string
}

// Known returns the identity without the names that cannot be ones: what is read
// from a secret may be anything.
func (i Identity) Known() Identity {
	if len(validation.IsDNS1123Label(i.Cluster)) > 0 {
		i.Cluster = ""
	}
	if len(validation.IsDNS1123Subdomain(i.Agent)) > 0 {
		i.Agent = ""
	}
	return i
}

// CommonName is the subject's common name and the user name on the hub.
func (i Identity) CommonName() string { return clusterv1.UserPrefix + i.Cluster + ":" + i.Agent }

// Organizations are the subject's organizations and the groups on the hub.
func (i Identity) Organizations() []string {
	return []string{clusterv1.UserPrefix + i.Cluster, clusterv1.GroupManagedClusters}
}
