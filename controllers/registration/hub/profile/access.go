// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto/x509"
	"encoding/json"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
)

// maxCA is the largest authority that a profile shows, in bytes.
const maxCA = 128 << 10

// provider is the entry of status.accessProviders that this hub maintains: a cluster as in a
// kubeconfig, with what credential plugins get.
type provider struct {
	Name    string `json:"name"`
	Cluster struct {
		Server     string      `json:"server"`
		CA         []byte      `json:"certificate-authority-data,omitempty"`
		Extensions []extension `json:"extensions"`
	} `json:"cluster"`
}

type extension struct {
	Name      string            `json:"name"`
	Extension map[string]string `json:"extension"`
}

// setAccess sets the entry of this hub, and leaves those of others where and as they are. The
// tokens of ManagedServiceAccounts are for the API server of the cluster, so the entry leads
// there; a cluster that publishes no usable address has none.
func setAccess(p *multiclusterv1alpha1.ClusterProfile, mc *clusterv1.ManagedCluster) {
	own := access(mc)
	var out []runtime.RawExtension
	for _, entry := range p.Status.AccessProviders {
		var is struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(entry.Raw, &is); err != nil || is.Name != multiclusterv1alpha1.AccessProviderName {
			out = append(out, entry)
		} else if own != nil {
			out = append(out, *own)
			own = nil
		}
	}
	if own != nil {
		out = append(out, *own)
	}
	p.Status.AccessProviders = out
}

// access returns the entry of this hub, or nil if the cluster publishes no usable address.
func access(mc *clusterv1.ManagedCluster) *runtime.RawExtension {
	for _, c := range mc.Spec.ManagedClusterClientConfigs {
		if !isUsable(c) {
			continue
		}
		own := provider{Name: multiclusterv1alpha1.AccessProviderName}
		own.Cluster.Server, own.Cluster.CA = c.URL, c.CABundle
		own.Cluster.Extensions = []extension{{Name: multiclusterv1alpha1.ExtensionExec, Extension: map[string]string{"clusterName": mc.Name}}}
		raw, err := json.Marshal(own)
		if err != nil { // strings and bytes can be encoded
			return nil
		}
		return &runtime.RawExtension{Raw: raw}
	}
	return nil
}

// isUsable reports whether a client can send a token to an address: to a host, by TLS, with
// certificates that can be read. Without any, the client uses those of its system.
func isUsable(c clusterv1.ClientConfig) bool {
	at, err := url.Parse(c.URL)
	if err != nil || at.Scheme != "https" || at.Hostname() == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return false
	}
	if len(c.CABundle) == 0 {
		return true
	}
	return len(c.CABundle) <= maxCA && x509.NewCertPool().AppendCertsFromPEM(c.CABundle)
}
