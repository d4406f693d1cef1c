// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"cmp"
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

// revokedFor is how long a revoked token is remembered: the API server accepts it for some
// seconds after its Secret is gone.
const revokedFor = time.Hour

// Refusal is why a token is not valid for a request; the zero Refusal means that it is valid,
// or was not made by this project.
type Refusal struct {
	// Reason is one of clusterv1.ReasonToken*.
	Reason string
	// Message explains it to users on both sides, with what to do.
	Message string
}

// Token is a join token, without its secret.
type Token struct {
	// JoinToken is the id users know it by, the credential id that the API server records in
	// requests, and the limit of its uses.
	identity.JoinToken
	// Cluster is the only cluster it is for; empty means any.
	Cluster string
	// Expires is when it expires; zero when unknown.
	Expires time.Time
	// Revoked is when its Secret was deleted; zero while it exists, and when it was deleted
	// after the token had expired.
	Revoked time.Time
}

// TrimToken keeps of a cached join token Secret only what this loop reads, which does not
// include the secret.
func TrimToken(in any) (any, error) {
	s, ok := in.(*corev1.Secret)
	if !ok {
		return in, nil // a tombstone passes unchanged
	}
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		Labels: map[string]string{clusterv1.LabelJoinToken: s.Labels[clusterv1.LabelJoinToken]},
	}, Data: map[string][]byte{}}
	for _, key := range []string{clusterv1.JoinTokenKeyCredentialID, clusterv1.JoinTokenKeyCluster, clusterv1.JoinTokenKeyExpiration, clusterv1.JoinTokenKeyUses} {
		if value, ok := s.Data[key]; ok {
			// A truncated value still restricts: it matches no cluster and is not a number.
			out.Data[key] = value[:min(len(value), maxMetadata)]
		}
	}
	return out, nil
}

func readToken(s *corev1.Secret) Token {
	expires, _ := time.Parse(time.RFC3339, string(s.Data[clusterv1.JoinTokenKeyExpiration]))
	return Token{
		JoinToken: identity.JoinToken{
			ID: s.Labels[clusterv1.LabelJoinToken], Credential: string(s.Data[clusterv1.JoinTokenKeyCredentialID]),
			Limit: identity.ParseUses(string(s.Data[clusterv1.JoinTokenKeyUses])),
		},
		Cluster: string(s.Data[clusterv1.JoinTokenKeyCluster]), Expires: expires,
	}
}

// tokens holds the known join tokens, by credential id. It is safe for concurrent use.
type tokens struct {
	mu    sync.RWMutex
	known map[string]Token
}

// newTokens makes an empty store.
func newTokens() *tokens { return &tokens{known: map[string]Token{}} }

// Observe records a change of a token's Secret at a given time, and returns the credential id
// it concerns; empty when it has none yet.
func (t *tokens) Observe(old, current *corev1.Secret, now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for credential, token := range t.known {
		if !token.Revoked.IsZero() && now.Sub(token.Revoked) > revokedFor {
			delete(t.known, credential)
		}
	}
	token := readToken(cmp.Or(current, old))
	switch {
	case token.Credential == "":
	case current == nil && !token.Expires.IsZero() && !token.Expires.After(now):
		// It had expired, and its Secret was cleaned up.
		delete(t.known, token.Credential)
	case current == nil:
		token.Revoked = now
		fallthrough
	default:
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

// idOf returns the id of the join token a request was sent with; empty when it was sent
// without one, or the token is no longer known.
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

// refusalOf returns why a request of an agent of cluster is refused because of the token it was
// sent with. The token's expiry is compared with the time the request was sent; open requests
// are refused once their token is revoked, or once as many other clusters as allowed have
// used it, which admits reports.
func refusalOf(csr *certificatesv1.CertificateSigningRequest, cluster string, get func(credential string) (Token, bool), admits func(Token) bool) Refusal {
	refuse := func(reason, format string, args ...any) Refusal {
		return Refusal{reason, fmt.Sprintf(format, args...) +
			"; make one for this cluster on the hub, and join with it: kubectl ocm hub token create --cluster " + cluster}
	}
	if names := identity.BootstrapClusters(csr.Spec.Groups); len(names) > 0 && !slices.Contains(names, cluster) {
		return refuse(clusterv1.ReasonTokenForAnotherCluster,
			"it was sent by %s, whose token is for cluster %s only", csr.Spec.Username, strings.Join(names, ", "))
	}
	for _, credential := range csr.Spec.Extra[clusterv1.ExtraCredentialID] {
		t, ok := get(credential)
		switch {
		case !ok:
		case t.Cluster != "" && t.Cluster != cluster:
			return refuse(clusterv1.ReasonTokenForAnotherCluster, "it was sent with join token %s, which is for cluster %s only", t.ID, t.Cluster)
		case !t.Revoked.IsZero():
			return refuse(clusterv1.ReasonTokenRevoked, "it was sent with join token %s, which was revoked", t.ID)
		case !t.Expires.IsZero() && csr.CreationTimestamp.After(t.Expires):
			return refuse(clusterv1.ReasonTokenExpired, "it was sent with join token %s, which expired at %s", t.ID, t.Expires.UTC().Format(time.RFC3339))
		case !admits(t):
			return refuse(clusterv1.ReasonTokenUsedUp, "%s", t.UsedUp())
		}
	}
	return Refusal{}
}

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// readLiveToken reads a token from the API server: before the hub approves a request automatically,
// the cache may be too old, in either direction.
func (c *Controller) readLiveToken(ctx context.Context, credential string) (Token, bool, error) {
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
			continue // not a Secret, so not a token
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
