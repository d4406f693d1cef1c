// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// revokedFor is how long a token that was revoked is remembered: the API server
// takes one for seconds after its Secret is gone.
const revokedFor = time.Hour

// Refusal is why a token is not good for a request; the zero Refusal means that
// it is good, or not one that this project made.
type Refusal struct {
	// Reason is one of clusterv1.ReasonToken*.
	Reason string
	// Message says it to the people on both sides, with what to do.
	Message string
}

// Token is a join token, without its secret.
type Token struct {
	// ID is the name that people know it by.
	ID string
	// Credential is what the API server calls it in requests.
	Credential string
	// Cluster is the only cluster that it is for; empty means any.
	Cluster string
	// Limit is how many clusters may join with it; zero means any number, and
	// identity.Unreadable none.
	Limit int
	// Expires is when it ends; zero when that is not known.
	Expires time.Time
	// Revoked is when its Secret went; zero while it is there, and where it went
	// after the token's own end.
	Revoked time.Time
}

// TrimToken keeps, of the Secret of a join token in the cache, what this loop
// reads; there is no secret in it.
func TrimToken(in any) (any, error) {
	s, ok := in.(*corev1.Secret)
	if !ok {
		return in, nil // a tombstone passes as it is
	}
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		Labels: map[string]string{clusterv1.LabelJoinToken: s.Labels[clusterv1.LabelJoinToken]},
	}, Data: map[string][]byte{}}
	for _, key := range []string{clusterv1.JoinTokenKeyCredentialID, clusterv1.JoinTokenKeyCluster, clusterv1.JoinTokenKeyExpiration, clusterv1.JoinTokenKeyUses} {
		if value, ok := s.Data[key]; ok {
			// What is cut still restricts: it names no cluster, and is no number.
			out.Data[key] = value[:min(len(value), maxMetadata)]
		}
	}
	return out, nil
}

func readToken(s *corev1.Secret) Token {
	t := Token{ID: s.Labels[clusterv1.LabelJoinToken], Credential: string(s.Data[clusterv1.JoinTokenKeyCredentialID]),
		Cluster: string(s.Data[clusterv1.JoinTokenKeyCluster]), Limit: identity.ParseUses(string(s.Data[clusterv1.JoinTokenKeyUses]))}
	if at, err := time.Parse(time.RFC3339, string(s.Data[clusterv1.JoinTokenKeyExpiration])); err == nil {
		t.Expires = at
	}
	return t
}

// counted is the token as its uses are counted.
func (t Token) counted() identity.JoinToken {
	return identity.JoinToken{ID: t.ID, Credential: t.Credential, Limit: t.Limit}
}

// tokens is what is known of the join tokens, by credential id. It is safe for
// concurrent use.
type tokens struct {
	mu    sync.RWMutex
	known map[string]Token
}

// newTokens makes an empty store.
func newTokens() *tokens { return &tokens{known: map[string]Token{}} }

// Observe takes in a change of a token's Secret at a time, and returns the
// credential id that it concerns; empty when it has none yet.
func (t *tokens) Observe(old, current *corev1.Secret, now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for credential, token := range t.known {
		if !token.Revoked.IsZero() && now.Sub(token.Revoked) > revokedFor {
			delete(t.known, credential)
		}
	}
	if current != nil {
		token := readToken(current)
		if token.Credential != "" {
			t.known[token.Credential] = token
		}
		return token.Credential
	}
	token := readToken(old)
	switch {
	case token.Credential == "":
	case !token.Expires.IsZero() && !token.Expires.After(now):
		// It had ended by itself, and its Secret was cleared away.
		delete(t.known, token.Credential)
	default:
		token.Revoked = now
		t.known[token.Credential] = token
	}
	return token.Credential
}

// Get returns a token by its credential id.
func (t *tokens) Get(credential string) (Token, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	token, ok := t.known[credential]
	return token, ok
}

// idOf is the id of the join token that a request was sent with; empty where it
// was sent otherwise, or the token is not known any more.
func (t *tokens) idOf(csr *certificatesv1.CertificateSigningRequest) string {
	if id, ok := strings.CutPrefix(csr.Spec.Username, "system:bootstrap:"); ok && slices.Contains(csr.Spec.Groups, clusterv1.GroupBootstrap) {
		return id
	}
	for _, credential := range csr.Spec.Extra[clusterv1.ExtraCredentialID] {
		if token, ok := t.Get(credential); ok {
			return token.ID
		}
	}
	return ""
}

// judge tells why a request of an agent of cluster is refused for the token
// that it was sent with. A request counts by what its token was when it was
// sent; a token that is revoked takes the open requests with it, and so does one
// that as many other clusters as may have used: admits tells.
func judge(csr *certificatesv1.CertificateSigningRequest, cluster string, get func(credential string) (Token, bool), admits func(Token) bool) Refusal {
	advice := fmt.Sprintf("; make one for this cluster on the hub, and join with it: kubectl ocm hub token create --cluster %s", cluster)
	if names := identity.BootstrapClusters(csr.Spec.Groups); len(names) > 0 && !slices.Contains(names, cluster) {
		return Refusal{clusterv1.ReasonTokenForAnotherCluster,
			fmt.Sprintf("it was sent by %s, whose token is for cluster %s only", csr.Spec.Username, strings.Join(names, ", ")) + advice}
	}
	for _, credential := range csr.Spec.Extra[clusterv1.ExtraCredentialID] {
		t, ok := get(credential)
		switch {
		case !ok:
		case t.Cluster != "" && t.Cluster != cluster:
			return Refusal{clusterv1.ReasonTokenForAnotherCluster, fmt.Sprintf("it was sent with join token %s, which is for cluster %s only", t.ID, t.Cluster) + advice}
		case !t.Revoked.IsZero():
			return Refusal{clusterv1.ReasonTokenRevoked, fmt.Sprintf("it was sent with join token %s, which was revoked", t.ID) + advice}
		case !t.Expires.IsZero() && csr.CreationTimestamp.After(t.Expires):
			return Refusal{
				clusterv1.ReasonTokenExpired,
				fmt.Sprintf("it was sent with join token %s, which ended at %s", t.ID, t.Expires.UTC().Format(time.RFC3339)) + advice,
			}
		case !admits(t):
			return Refusal{clusterv1.ReasonTokenUsedUp, t.counted().UsedUp() + advice}
		}
	}
	return Refusal{}
}

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// live reads a token from the API server: before the hub approves a request
// without a person, what the cache shows may be too old, either way.
func (c *Controller) live(ctx context.Context, credential string) (Token, bool, error) {
	known, ok := c.tokens.Get(credential)
	if ok && !known.Revoked.IsZero() {
		return known, true, nil
	}
	selector := clusterv1.LabelJoinToken
	if ok {
		selector += "=" + known.ID
	}
	list, err := c.config.Client.Resource(secrets).Namespace(operatorv1.NamespaceOperator).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return Token{}, false, fmt.Errorf("reading join tokens: %w", err)
	}
	for i := range list.Items {
		s, err := typed.FromUnstructured[corev1.Secret](&list.Items[i])
		if err != nil {
			continue // what is no Secret is no token
		}
		if t := readToken(s); t.Credential == credential {
			return t, true, nil
		}
	}
	if ok {
		known.Revoked = c.config.Clock.Now()
	}
	return known, ok, nil
}
