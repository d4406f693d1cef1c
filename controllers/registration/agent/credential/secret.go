// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Keys of the pending secret, beside cluster-name, agent-name and those of request.Pending.
// They are private to this agent; no other program reads them.
const (
	pendingHub       = "hub"
	pendingBootstrap = "bootstrap"
)

// Secret is what is kept of one of the secrets.
type Secret struct {
	request.Seen
	// Type is what Kubernetes makes of it; kept of the image pull secret only.
	Type string
	// Hub is the annotation that names the hub of the stored access.
	Hub string
	// Data is the decoded content.
	Data map[string][]byte
}

// NewSecrets makes the collection of the relevant secrets in an agent's namespace: the
// agent's own and the image pull secret in full, and of any other the kubeconfig, because the
// settings may name any secret as the bootstrap secret. Its owner runs it.
func NewSecrets(client dynamic.Interface, namespace string, log logr.Logger) *watch.Collection[Secret] {
	own := []string{clusterv1.SecretHubKubeconfig, clusterv1.SecretHubKubeconfigPending}
	return watch.New(watch.Options[Secret]{
		Client: client, Resource: request.Secrets, Namespace: namespace, Log: log,
		Keep: func(u *unstructured.Unstructured) (Secret, bool) {
			if slices.Contains(own, u.GetName()) {
				return readSecret(u), true
			}
			if u.GetName() == operatorv1.SecretImagePull {
				s := readSecret(u)
				s.Type, _, _ = unstructured.NestedString(u.Object, "type")
				return s, true
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
	return Secret{
		Seen: request.Seen{Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()},
		Hub:  u.GetAnnotations()[clusterv1.AnnotationHubID], Data: request.SecretData(u),
	}
}

// Bootstrap is the content of the bootstrap secret.
type Bootstrap struct {
	// Secret is its name; empty when none of several is used.
	Secret string
	// Present reports whether there is a secret with a kubeconfig in it.
	Present bool
	// Config is the parsed kubeconfig; nil when there is none or it is rejected.
	Config *kubeconfig.Config
	// Problem is why Config is nil, for users.
	Problem string
	// Digest changes when the content of the kubeconfig does.
	Digest string
}

// ReadBootstrap parses the content of the bootstrap secret of that name; nil means there is
// none.
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

// Kept is the content of hub-kubeconfig-secret.
type Kept struct {
	// Secret is what was read; nil when there is none.
	Secret *Secret
	// Config is the parsed kubeconfig; nil when there is a Problem.
	Config *kubeconfig.Config
	// Identity is the identity named in the secret.
	Identity agent.Identity
	// Leaf is the client certificate.
	Leaf *x509.Certificate
	// Expires is the earliest expiry of the certificates in the chain.
	Expires time.Time
	// Problem is why the content cannot be used; empty when it can.
	Problem string
}

// HubID identifies the hub that issued the certificate: as recorded, or by the stored
// kubeconfig where nothing was recorded. It must not be called without a Config.
func (k Kept) HubID() string {
	return cmp.Or(k.Secret.Hub, k.Config.ID())
}

// Certified returns the identity the stored certificate is for; empty without one.
func (k Kept) Certified() agent.Identity {
	if k.Leaf == nil {
		return agent.Identity{}
	}
	a, _ := identity.ParseUser(k.Leaf.Subject.CommonName)
	return agent.Identity{Cluster: a.Cluster, Agent: a.Name}
}

// ReadKept parses the hub secret; ok is false when there is none.
func ReadKept(s Secret, ok bool) Kept {
	if !ok {
		return Kept{Problem: "there is no hub kubeconfig yet"}
	}
	k := Kept{Secret: &s, Identity: s.identity()}
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
		k.Problem = "the kept certificate and key do not match"
		return k
	}
	k.Config, k.Leaf, k.Expires = c, chain[0], request.Expires(chain)
	return k
}

// Pending is a certificate request in progress, or the time at which the next one may be
// made.
type Pending struct {
	// Secret is what was read; nil when nothing is pending.
	Secret *Secret
	request.Pending
	// Identity and Hub (kubeconfig.Config.ID) are what the request is for.
	Identity agent.Identity
	Hub      string
	// Bootstrap is the digest of the bootstrap kubeconfig when the request was made.
	Bootstrap string
}

// PendingHub identifies the hub the pending secret is for, like kubeconfig.Config.ID; empty
// when nothing is pending.
func PendingHub(s Secret) string { return string(s.Data[pendingHub]) }

func readPending(s Secret, ok bool) Pending {
	if !ok {
		return Pending{}
	}
	p := Pending{Secret: &s, Pending: request.ReadPending(s.Data), Identity: s.identity(), Hub: PendingHub(s), Bootstrap: string(s.Data[pendingBootstrap])}
	// Only requests of add-ons are kept with their certificates.
	p.Certificate = nil
	return p
}

// identity is the identity named in the secret.
func (s Secret) identity() agent.Identity {
	return agent.Identity{Cluster: string(s.Data[clusterv1.SecretKeyClusterName]), Agent: string(s.Data[clusterv1.SecretKeyAgentName])}
}

// data returns the content of the pending secret.
func (p Pending) data() map[string][]byte {
	d := p.Data()
	d[clusterv1.SecretKeyClusterName], d[clusterv1.SecretKeyAgentName] = []byte(p.Identity.Cluster), []byte(p.Identity.Agent)
	d[pendingHub], d[pendingBootstrap] = []byte(p.Hub), []byte(p.Bootstrap)
	return d
}

// misfit returns why a certificate is not for this identity; empty when it is.
func misfit(leaf *x509.Certificate, id agent.Identity) string {
	got, want := slices.Sorted(slices.Values(leaf.Subject.Organization)), slices.Sorted(slices.Values(id.Organizations()))
	switch {
	case leaf.Subject.CommonName != id.CommonName():
		return fmt.Sprintf("the certificate is for %q, not for %q", leaf.Subject.CommonName, id.CommonName())
	case !slices.Equal(got, want) || len(leaf.Subject.OrganizationalUnit) > 0:
		return "the certificate is for other groups"
	}
	return ""
}
