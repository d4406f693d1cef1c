// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// maxRequest bounds a PEM certificate request that is looked at, in bytes; one
// of ours has about 600.
const maxRequest = 16 << 10

// Agent names one agent of one cluster.
type Agent struct {
	Cluster, Name string
}

// User is the user name of the agent, which is also the common name of its
// certificate.
func (a Agent) User() string { return clusterv1.UserPrefix + a.Cluster + ":" + a.Name }

// ParseUser takes a user name apart; ok is false when it is not exactly one of
// an agent.
func ParseUser(user string) (a Agent, ok bool) {
	rest, ok := strings.CutPrefix(user, clusterv1.UserPrefix)
	if !ok {
		return Agent{}, false
	}
	cluster, name, ok := strings.Cut(rest, ":")
	if !ok || cluster == "" || name == "" || strings.Contains(name, ":") {
		return Agent{}, false
	}
	return Agent{Cluster: cluster, Name: name}, true
}

// ClusterGroup is the group of all agents of one cluster.
func ClusterGroup(cluster string) string { return clusterv1.UserPrefix + cluster }

// Clusters returns the clusters whose agent a requester is, by its groups, and
// whether it is an agent at all. An agent of more than one cluster, or of none
// that can be named, gets no cluster's rights.
func Clusters(groups []string) (clusters []string, agent bool) {
	for _, g := range groups {
		if g == clusterv1.GroupManagedClusters {
			agent = true
			continue
		}
		cluster, ok := strings.CutPrefix(g, clusterv1.UserPrefix)
		if !ok {
			cluster, ok = strings.CutPrefix(g, clusterv1.GroupPrefixEKS)
		}
		// Groups of add-ons go on after the cluster and are no agents.
		if !ok || cluster == "" || strings.Contains(cluster, ":") {
			continue
		}
		agent = true
		if !slices.Contains(clusters, cluster) {
			clusters = append(clusters, cluster)
		}
	}
	return clusters, agent
}

// ErrNoAgentRequest means that a certificate request is not one that the agent
// of the labelled cluster makes (registration.md 5.3).
var ErrNoAgentRequest = errors.New("not the request of an agent of this cluster")

// ParseRequest reads the PEM certificate request of a CSR labelled with cluster
// and returns the agent that it is for. Every deviation from the form of
// registration.md 3.4 is ErrNoAgentRequest with the reason.
func ParseRequest(raw []byte, cluster string) (Agent, error) {
	if len(raw) > maxRequest {
		return Agent{}, refuse("it has %d bytes, more than %d", len(raw), maxRequest)
	}
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || strings.TrimSpace(string(rest)) != "" {
		return Agent{}, refuse("it is not one PEM block of type CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return Agent{}, refuse("it cannot be parsed: %v", err)
	}
	if err := request.CheckSignature(); err != nil {
		return Agent{}, refuse("its signature is not that of its key")
	}
	if len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 {
		return Agent{}, refuse("it asks for alternative names")
	}
	groups := slices.DeleteFunc(slices.Clone(request.Subject.Organization), func(o string) bool { return o == clusterv1.GroupManagedClusters })
	if len(groups) != 1 || groups[0] != ClusterGroup(cluster) {
		return Agent{}, refuse("its organizations are %q", request.Subject.Organization)
	}
	agent, ok := ParseUser(request.Subject.CommonName)
	if !ok || agent.Cluster != cluster {
		return Agent{}, refuse("its common name is %q", request.Subject.CommonName)
	}
	return agent, nil
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNoAgentRequest}, args...)...)
}
