// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Defaults and limits of Settings (registration.md 9).
const (
	// DefaultHealthPeriod is how often the health of the own API server is read.
	DefaultHealthPeriod = time.Minute
	// DefaultMaxClaims is how many custom claims are reported at most.
	DefaultMaxClaims = 20
	// MinCertificateSeconds is the shortest life of a certificate that may be
	// asked for.
	MinCertificateSeconds = 3600

	maxSuffixes, maxSuffixLength = 10, 64
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
	// CertificateSeconds is the life that is asked for; 0 leaves it to the hub.
	CertificateSeconds int32
	// HealthPeriod is how often the own API server's health is read.
	HealthPeriod time.Duration
	// Claims is the feature gate ClusterClaim: report ClusterClaims.
	Claims bool
	// MaxClaims limits the custom claims; reserved ones are always reported.
	MaxClaims int
	// ReservedSuffixes end the names of further claims that count as reserved.
	ReservedSuffixes []string
	// EvictionGrace is how long objects of a work that the hub forgot are kept;
	// 0 means the work agent's default.
	EvictionGrace time.Duration
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
	case s.CertificateSeconds != 0 && s.CertificateSeconds < MinCertificateSeconds:
		return fmt.Errorf("client certificate expiration of %d seconds: must be 0 or at least %d", s.CertificateSeconds, MinCertificateSeconds)
	case s.HealthPeriod <= 0:
		return fmt.Errorf("cluster health check period %s: must be greater than 0", s.HealthPeriod)
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

// Identity is who an agent is on a hub.
type Identity struct {
	// Cluster is the name of the ManagedCluster and of its namespace.
	Cluster string
	// Agent tells agents of one cluster name apart.
	Agent string
}

// CommonName is the subject's common name and the user name on the hub
// (registration.md 3.4).
func (i Identity) CommonName() string { return clusterv1.UserPrefix + i.Cluster + ":" + i.Agent }

// Organizations are the subject's organizations and the groups on the hub.
func (i Identity) Organizations() []string {
	return []string{clusterv1.UserPrefix + i.Cluster, clusterv1.GroupManagedClusters}
}
