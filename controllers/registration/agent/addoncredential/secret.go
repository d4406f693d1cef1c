// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Secret is what is kept of a secret created by this agent: no private key but that of a
// request in progress.
type Secret struct {
	request.Seen
	// AddOn is the add-on it belongs to, Digest what it was made for.
	AddOn, Digest string
	// Cluster is the cluster name in it, Kubeconfig a digest of the kubeconfig in it.
	Cluster, Kubeconfig string
	// Certificate and Token are the lifetimes of its contents, Key is a digest of the
	// certificate's private key.
	Certificate, Token Life
	Key                string
	// Pending is the content of a pending secret; nil for a credential. The issued certificate
	// is kept there while the namespace of the add-on is missing.
	Pending *request.Pending
}

// digest returns what the secret was made for; empty if there is none.
func (s *Secret) digest() string {
	if s == nil {
		return ""
	}
	return s.Digest
}

// Life is how long a credential is valid.
type Life struct {
	// Until is its expiry, Renew when to start getting the next one.
	Until, Renew time.Time
	// UID and Owner (namespace/name) identify the ServiceAccount of a token.
	UID   types.UID
	Owner string
	// Problem is why it cannot be used; empty when it can.
	Problem string
}

// NewSecrets makes the collection of the secrets, in the namespace scope or in all, that the agent in
// agentNamespace created for add-ons. Its owner runs it.
func NewSecrets(client dynamic.Interface, agentNamespace, scope string, log logr.Logger) *watch.Collection[Secret] {
	return watch.New(watch.Options[Secret]{
		Client: client, Resource: request.Secrets, Namespace: scope, Log: log,
		LabelSelector: addonv1alpha1.LabelCredentialAgent + "=" + agentNamespace,
		Keep:          func(u *unstructured.Unstructured) (Secret, bool) { return readSecret(u), true },
	})
}

// secretLabels returns the labels that mark a secret of this agent.
func secretLabels(agentNamespace, role string, w Want) map[string]string {
	return map[string]string{
		addonv1alpha1.LabelCredentialAgent: agentNamespace, addonv1alpha1.LabelCredentialRole: role,
		addonv1alpha1.LabelAddOnName: w.AddOn, clusterv1.LabelClusterName: w.Cluster,
	}
}

func readSecret(u *unstructured.Unstructured) Secret {
	s := Secret{
		Seen:  request.Seen{Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()},
		AddOn: u.GetLabels()[addonv1alpha1.LabelAddOnName], Digest: u.GetAnnotations()[addonv1alpha1.AnnotationCredentialDigest],
	}
	data := request.SecretData(u)
	if u.GetLabels()[addonv1alpha1.LabelCredentialRole] == addonv1alpha1.CredentialPending {
		s.Pending = new(request.ReadPending(data))
		return s
	}
	s.Cluster, s.Kubeconfig = string(data[clusterv1.SecretKeyClusterName]), textDigest(data[clusterv1.SecretKeyKubeconfig])
	s.Certificate, s.Token, s.Key = certificateLife(data), readToken(data[addonv1alpha1.SecretKeyToken]), textDigest(data[clusterv1.SecretKeyTLSKey])
	return s
}

// textDigest returns the hex SHA-256 of raw; empty for empty input.
func textDigest(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	return kubeconfig.HubHash(string(raw))
}

func certificateLife(data map[string][]byte) Life {
	chain, err := request.ReadChain(data[clusterv1.SecretKeyTLSCert])
	if err == nil {
		if _, pair := tls.X509KeyPair(data[clusterv1.SecretKeyTLSCert], data[clusterv1.SecretKeyTLSKey]); pair != nil {
			err = errors.New("does not belong to the key")
		}
	}
	if err != nil {
		return Life{Problem: "the certificate " + err.Error()}
	}
	until := request.Expires(chain)
	return Life{Until: until, Renew: request.RenewAt(chain[0], until)}
}
