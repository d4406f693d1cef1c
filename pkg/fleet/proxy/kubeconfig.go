// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// Way leads to a managed cluster through its hub.
type Way struct {
	// Cluster is the managed cluster.
	Cluster string
	// Account is the ManagedServiceAccount of the cluster that requests are made as; empty for the user.
	Account string
}

// Name is what a context is called that goes this way: CLUSTER or CLUSTER/ACCOUNT.
func (w Way) Name() string {
	if w.Account == "" {
		return w.Cluster
	}
	return w.Cluster + "/" + w.Account
}

// path is added to the address of the hub's API server.
func (w Way) path() string {
	if w.Account == "" {
		return connectv1alpha1.ServerPath(w.Cluster)
	}
	return connectv1alpha1.AccountPath(w.Cluster, w.Account)
}

// Kubeconfig returns a kubeconfig with which any client reaches a managed cluster through its hub. hub is the
// kubeconfig of the hub with one context, whose cluster and user it takes over: address, CA and proxy, and the
// credentials. The context is called like the way, and namespace is the default one there; it may be empty.
// The error says what is missing in hub.
func Kubeconfig(hub *clientcmdapi.Config, way Way, namespace string) (*clientcmdapi.Config, error) {
	at := hub.Contexts[hub.CurrentContext]
	if at == nil || hub.Clusters[at.Cluster] == nil {
		return nil, fmt.Errorf("the kubeconfig has no cluster for context %q", hub.CurrentContext)
	}
	out := clientcmdapi.NewConfig()
	name := way.Name()
	out.Clusters[name] = behind(hub.Clusters[at.Cluster], way)
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: at.AuthInfo, Namespace: namespace}
	out.CurrentContext = name
	if user := hub.AuthInfos[at.AuthInfo]; user != nil {
		out.AuthInfos[at.AuthInfo] = user.DeepCopy()
		out.AuthInfos[at.AuthInfo].LocationOfOrigin = ""
	}
	return out, nil
}

// behind returns the entry of a cluster that is reached through the one of its hub.
func behind(hub *clientcmdapi.Cluster, way Way) *clientcmdapi.Cluster {
	out := hub.DeepCopy()
	out.LocationOfOrigin = ""
	out.Server = strings.TrimSuffix(out.Server, "/") + way.path()
	return out
}

// Entry is what Merge adds to a kubeconfig.
type Entry struct {
	// Context is the new context, and the name of its cluster entry.
	Context string `json:"context"`
	// Cluster is the managed cluster, Account the ManagedServiceAccount that it is used as, and Hub the context
	// whose user it has.
	Cluster string `json:"cluster"`
	Account string `json:"account,omitempty"`
	Hub     string `json:"hub"`
	// Changed is false when the kubeconfig had the entry already.
	Changed bool `json:"changed"`
}

// Merge adds a context for a managed cluster to the kubeconfig that has a context for its hub. The new context has the
// hub's user, so that no credential is stored twice. It is called HUB/CLUSTER or HUB/CLUSTER/ACCOUNT, and replaces what
// a former call has added; an entry of that name that leads elsewhere is an error.
func Merge(into *clientcmdapi.Config, hubContext string, way Way, namespace string) (Entry, error) {
	at := into.Contexts[hubContext]
	if at == nil || into.Clusters[at.Cluster] == nil {
		return Entry{}, fmt.Errorf("the kubeconfig has no cluster for context %q", hubContext)
	}
	name := hubContext + "/" + way.Name()
	entry := behind(into.Clusters[at.Cluster], way)
	wanted := &clientcmdapi.Context{Cluster: name, AuthInfo: at.AuthInfo, Namespace: namespace}
	if has := into.Clusters[name]; has != nil {
		if !strings.HasSuffix(has.Server, way.path()) {
			return Entry{}, fmt.Errorf("the kubeconfig has a cluster %q that is another one: %s", name, has.Server)
		}
		entry.LocationOfOrigin = has.LocationOfOrigin
	} else if into.Contexts[name] != nil {
		return Entry{}, fmt.Errorf("the kubeconfig has a context %q that is another one", name)
	}
	out := Entry{Context: name, Cluster: way.Cluster, Account: way.Account, Hub: hubContext, Changed: true}
	if old := into.Contexts[name]; old != nil {
		if namespace == "" {
			wanted.Namespace = old.Namespace
		}
		wanted.LocationOfOrigin, wanted.Extensions = old.LocationOfOrigin, old.Extensions
		same := *old
		out.Changed = same.Cluster != wanted.Cluster || same.AuthInfo != wanted.AuthInfo || same.Namespace != wanted.Namespace ||
			!sameServer(into.Clusters[name], entry)
	}
	into.Clusters[name], into.Contexts[name] = entry, wanted
	return out, nil
}

// sameServer reports whether two entries lead to the same server and trust the same CA.
func sameServer(a, b *clientcmdapi.Cluster) bool {
	return a.Server == b.Server && a.CertificateAuthority == b.CertificateAuthority && a.ProxyURL == b.ProxyURL && a.TLSServerName == b.TLSServerName &&
		a.InsecureSkipTLSVerify == b.InsecureSkipTLSVerify && string(a.CertificateAuthorityData) == string(b.CertificateAuthorityData)
}
