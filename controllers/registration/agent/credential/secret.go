// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Keys of the pending secret, beside cluster-name, agent-name and those of
// request.Pending. They are this agent's own; no other program reads them.
const (
	pendingHub       = "hub"
	pendingBootstrap = "bootstrap"
)

// Secret is what is remembered of one of the three secrets.
type Secret struct {
	// Name, UID and ResourceVersion identify what was seen.
	Name            string
	UID             types.UID
	ResourceVersion string
	// Hub is the annotation that names the hub of a kept access.
	Hub string
	// Data is the decoded content.
	Data map[string][]byte
}

// NewSecrets makes the collection of the secrets that matter in an agent's
// namespace: those of its own access, and of any other the kubeconfig, because
// the settings may name any as a bootstrap secret. Its owner runs it.
func NewSecrets(client dynamic.Interface, namespace string, log logr.Logger) *watch.Collection[Secret] {
	own := []string{clusterv1.SecretHubKubeconfig, clusterv1.SecretHubKubeconfigPending}
	return watch.New(watch.Options[Secret]{
		Client: client, Resource: request.Secrets, Namespace: namespace, Log: log,
		Keep: func(u *unstructured.Unstructured) (Secret, bool) {
			if slices.Contains(own, u.GetName()) {
				return readSecret(u), true
			}
			text, found, _ := unstructured.NestedString(u.Object, "data", clusterv1.SecretKeyKubeconfig)
			if !found {
				return Secret{}, false
			}
			u.Object["data"] = map[string]any{clusterv1.SecretKeyKubeconfig: text}
			return readSecret(u), true
		},
	})
}

func readSecret(u *unstructured.Unstructured) Secret {
	return Secret{Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		Hub: u.GetAnnotations()[clusterv1.AnnotationHubID], Data: request.SecretData(u)}
}

// Bootstrap is what the bootstrap secret says.
type Bootstrap struct {
	// Secret is its name; empty when none of several is used.
	Secret string
	// Present tells whether there is a secret with a kubeconfig in it.
	Present bool
	// Config is the parsed kubeconfig, nil when there is none or it is refused.
	Config *kubeconfig.Config
	// Problem says why Config is nil, for people.
	Problem string
	// Digest changes when the content of the kubeconfig does.
	Digest string
}

// ReadBootstrap understands the bootstrap secret of that name by its content;
// nil means there is none.
func ReadBootstrap(name string, data map[string][]byte) Bootstrap {
	raw := data[clusterv1.SecretKeyKubeconfig]
	if len(raw) == 0 {
		return Bootstrap{Secret: name, Problem: "secret " + name + " with key kubeconfig is missing"}
	}
	b := Bootstrap{Secret: name, Present: true, Digest: kubeconfig.HubHash(string(raw))}
	c, err := kubeconfig.Parse(raw)
	if err != nil {
		b.Problem = "secret " + name + ": " + err.Error()
		return b
	}
	b.Config = c
	return b
}

// Kept is what hub-kubeconfig-secret says.
type Kept struct {
	// Secret is what was read; nil when there is none.
	Secret *Secret
	// Config is the parsed kubeconfig, nil when Problem tells why there is none.
	Config *kubeconfig.Config
	// Identity is the one that the secret names.
	Identity agent.Identity
	// Leaf is the client certificate.
	Leaf *x509.Certificate
	// Expires is the earliest end of a certificate in the chain.
	Expires time.Time
	// Problem says why the content cannot be used, empty when it can.
	Problem string
}

// HubID names the hub that gave the certificate: as noted, or by the kept
// kubeconfig where nothing was noted. It must not be called without a Config.
func (k Kept) HubID() string {
	if k.Secret.Hub != "" {
		return k.Secret.Hub
	}
	return k.Config.ID()
}

// Cluster is the name that the kept certificate is for; empty without one.
func (k Kept) Cluster() string {
	if k.Leaf == nil {
		return ""
	}
	a, _ := identity.ParseUser(k.Leaf.Subject.CommonName)
	return a.Cluster
}

// ReadKept understands the hub secret; ok false means there is none.
func ReadKept(s Secret, ok bool) Kept {
	if !ok {
		return Kept{Problem: "there is no hub kubeconfig yet"}
	}
	k := Kept{Secret: &s, Identity: agent.Identity{
		Cluster: string(s.Data[clusterv1.SecretKeyClusterName]), Agent: string(s.Data[clusterv1.SecretKeyAgentName]),
	}}
	c, err := kubeconfig.ParseSecret(s.Data)
	if err != nil {
		k.Problem = err.Error()
		return k
	}
	chain, err := request.ReadChain(c.CertData)
	if err != nil {
		k.Problem = "the kept certificate: " + err.Error()
		return k
	}
	if _, err := tls.X509KeyPair(c.CertData, c.KeyData); err != nil {
		k.Problem = "the kept certificate and key do not belong together"
		return k
	}
	k.Config, k.Leaf, k.Expires = c, chain[0], request.Expires(chain)
	return k
}

// Pending is a certificate request that is under way, or the time at which the
// next one may be made.
type Pending struct {
	// Secret is what was read; nil when nothing is pending.
	Secret *Secret
	request.Pending
	// Identity and Hub are what the request is for (kubeconfig.Config.ID).
	Identity agent.Identity
	Hub      string
	// Bootstrap is the digest of the bootstrap kubeconfig at that time.
	Bootstrap string
}

// PendingHub identifies the hub that the pending secret is for, as
// kubeconfig.Config.ID does; empty when nothing is pending.
func PendingHub(s Secret) string { return string(s.Data[pendingHub]) }

func readPending(s Secret, ok bool) Pending {
	if !ok {
		return Pending{}
	}
	return Pending{
		Secret: &s, Pending: request.ReadPending(s.Data),
		Identity: agent.Identity{Cluster: string(s.Data[clusterv1.SecretKeyClusterName]), Agent: string(s.Data[clusterv1.SecretKeyAgentName])},
		Hub:      string(s.Data[pendingHub]), Bootstrap: string(s.Data[pendingBootstrap]),
	}
}

// data is what the pending secret holds.
func (p Pending) data() map[string][]byte {
	d := p.Data()
	d[clusterv1.SecretKeyClusterName], d[clusterv1.SecretKeyAgentName] = []byte(p.Identity.Cluster), []byte(p.Identity.Agent)
	d[pendingHub], d[pendingBootstrap] = []byte(p.Hub), []byte(p.Bootstrap)
	return d
}

// fits tells why a certificate is not one for this identity; empty means it is.
func fits(leaf *x509.Certificate, id agent.Identity) string {
	want := id.Organizations()
	got := slices.Clone(leaf.Subject.Organization)
	slices.Sort(want)
	slices.Sort(got)
	switch {
	case leaf.Subject.CommonName != id.CommonName():
		return fmt.Sprintf("the certificate is for %q, not for %q", leaf.Subject.CommonName, id.CommonName())
	case !slices.Equal(got, want) || len(leaf.Subject.OrganizationalUnit) > 0:
		return "the certificate is for other groups"
	}
	return ""
}
