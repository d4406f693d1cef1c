// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Token is one join token, without its secret.
type Token struct {
	// ID is its name for revoke.
	ID string `json:"id"`
	// Type is "serviceaccount" or "bootstrap".
	Type string `json:"type"`
	// Expires is when it expires; zero when it never does.
	Expires metav1.Time `json:"expires"`
	// Uses counts the certificate requests made with it that are still stored.
	Uses int `json:"uses"`
	// Limit is how many clusters may join with it; 0 means any number. A negative number means
	// that the limit cannot be read, and no further cluster may join.
	Limit int `json:"limit,omitempty"`
	// Cluster is the only cluster it is for; empty means any.
	Cluster string `json:"cluster,omitempty"`
	// Joined are the clusters that were accepted with it, according to the hub's record or to
	// requests that are still stored; the last token of each cluster counts.
	Joined []string `json:"joined,omitempty"`
	// Created is when it was made.
	Created metav1.Time `json:"created"`
	// Expired is true when it has expired.
	Expired bool `json:"expired"`

	credential string
	// Object is the token's Secret.
	Object *unstructured.Unstructured `json:"-"`
}

// Count records the uses of a token.
func (t *Token) Count(requests, clusters []unstructured.Unstructured) {
	for i := range requests {
		if t.Used(&requests[i]) {
			t.Uses++
		}
	}
	t.Joined = slices.Sorted(maps.Keys(t.joinToken().Users(recordedTokens(clusters), approvals(requests))))
}

// Tokens reads the Secrets of both types of tokens.
func Tokens(ctx context.Context, hub *fleet.Cluster, now time.Time) ([]Token, error) {
	own, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.Secrets, Namespace: operatorv1.NamespaceOperator, Labels: clusterv1.LabelJoinToken})
	if err != nil {
		return nil, fleet.Explain("listing tokens", hub, err)
	}
	bootstrap, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.Secrets, Namespace: metav1.NamespaceSystem, Labels: "app=" +
		operatorv1.DefaultClusterManagerName})
	if err != nil {
		return nil, fleet.Explain("listing bootstrap tokens", hub, err)
	}
	var out []Token
	for i := range own {
		out = append(out, ownToken(&own[i], now))
	}
	for i := range bootstrap {
		if kind, _, _ := unstructured.NestedString(bootstrap[i].Object, "type"); kind == "bootstrap.kubernetes.io/token" {
			out = append(out, bootstrapToken(&bootstrap[i], now))
		}
	}
	slices.SortFunc(out, func(a, b Token) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func ownToken(u *unstructured.Unstructured, now time.Time) Token {
	t := Token{ID: u.GetLabels()[clusterv1.LabelJoinToken], Type: "serviceaccount", Created: u.GetCreationTimestamp(), Object: u,
		Cluster: fleet.SecretValue(u, clusterv1.JoinTokenKeyCluster), credential: fleet.SecretValue(u, clusterv1.JoinTokenKeyCredentialID),
		Limit: identity.ParseUses(fleet.SecretValue(u, clusterv1.JoinTokenKeyUses))}
	t.expiry(fleet.SecretValue(u, clusterv1.JoinTokenKeyExpiration), now)
	return t
}

func bootstrapToken(u *unstructured.Unstructured, now time.Time) Token {
	t := Token{ID: fleet.SecretValue(u, "token-id"), Type: "bootstrap", Created: u.GetCreationTimestamp(), Object: u}
	t.credential = bootstrapUserPrefix + t.ID
	for _, group := range strings.Split(fleet.SecretValue(u, "auth-extra-groups"), ",") {
		if name, ok := strings.CutPrefix(group, clusterv1.GroupPrefixBootstrapCluster); ok {
			t.Cluster = name
		}
	}
	t.expiry(fleet.SecretValue(u, "expiration"), now)
	return t
}

func (t *Token) expiry(text string, now time.Time) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		t.Expires, t.Expired = metav1.NewTime(at), !at.After(now)
	}
}

// Used reports whether a certificate request was made with this token.
func (t *Token) Used(csr *unstructured.Unstructured) bool {
	return t.credential != "" && slices.Contains(credentials(csr), t.credential)
}

// bootstrapUserPrefix, followed by its id, is the user of a bootstrap token.
const bootstrapUserPrefix = "system:bootstrap:"

// credentials returns how a request's user was authenticated: the credential ids, or the user
// name of a bootstrap token.
func credentials(csr *unstructured.Unstructured) []string {
	out, _, _ := unstructured.NestedStringSlice(csr.Object, "spec", "extra", clusterv1.ExtraCredentialID)
	if user, _, _ := unstructured.NestedString(csr.Object, "spec", "username"); strings.HasPrefix(user, bootstrapUserPrefix) {
		out = append(out, user)
	}
	return out
}

// joinToken returns the token in the form in which its uses are counted.
func (t *Token) joinToken() identity.JoinToken {
	return identity.JoinToken{ID: t.ID, Credential: t.credential, Limit: t.Limit}
}

// recordedTokens returns with which token each cluster joined, according to the hub's record.
func recordedTokens(clusters []unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for i := range clusters {
		if id := clusters[i].GetAnnotations()[clusterv1.AnnotationJoinedBy]; id != "" {
			out[clusters[i].GetName()] = id
		}
	}
	return out
}

// approvals returns the requests that have a certificate or are about to get one.
func approvals(requests []unstructured.Unstructured) []identity.Approval {
	var out []identity.Approval
	for i := range requests {
		if state := StateOf(&requests[i]); state == StateApproved || state == StateIssued {
			out = append(out, identity.Approval{Cluster: requests[i].GetLabels()[clusterv1.LabelClusterName], Credentials: credentials(&requests[i])})
		}
	}
	return out
}

// Uses counts the uses of tokens with a limit while clusters are accepted.
type Uses struct {
	mu sync.Mutex
	// hub is where the tokens are.
	hub *fleet.Cluster
	// tokens are those with a limit.
	tokens []Token
	// users are the clusters that used each token, by its id.
	users map[string]map[string]bool
}

// ReadUses counts the uses of the tokens with a limit; when there are none it sends no
// request. Without the right to list clusters it counts only what the requests show; the hub
// counts all.
func ReadUses(ctx context.Context, hub *fleet.Cluster, tokens []Token, requests []unstructured.Unstructured) (*Uses, error) {
	limited := slices.DeleteFunc(slices.Clone(tokens), func(t Token) bool { return t.Limit == 0 })
	out := &Uses{hub: hub, tokens: limited, users: map[string]map[string]bool{}}
	if len(out.tokens) == 0 {
		return out, nil
	}
	clusters, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.ManagedClusters})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fleet.Explain("listing managedclusters", hub, err)
	}
	names, approved := recordedTokens(clusters), approvals(requests)
	for _, t := range out.tokens {
		out.users[t.ID] = t.joinToken().Users(names, approved)
	}
	return out, nil
}

// exhaustedToken returns the token of a request when other clusters have used it up; nil when it is
// good.
func (u *Uses) exhaustedToken(q Request) *Token {
	for i := range u.tokens {
		if t := &u.tokens[i]; t.Used(q.Object) && !t.joinToken().Admits(q.Cluster, u.users[t.ID]) {
			return t
		}
	}
	return nil
}

// Mark records on pending requests why they cannot be approved.
func (u *Uses) Mark(requests []Request) {
	for i := range requests {
		if q := &requests[i]; q.State == StatePending {
			if t := u.exhaustedToken(*q); t != nil {
				q.State, q.Reason = StateUntrusted, t.joinToken().UsedUp()
				q.fix = TokenForCluster.On(u.hub, "cluster", q.Cluster)
			}
		}
	}
}

// Spend takes a use for a request that is about to be approved, or returns an error when other
// requests of the same command took the last one.
func (u *Uses) Spend(q Request) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	marked := []Request{q}
	if u.Mark(marked); marked[0].State == StateUntrusted {
		return Distrust(marked[0], u.hub)
	}
	for i := range u.tokens {
		if t := &u.tokens[i]; t.Used(q.Object) {
			u.users[t.ID][q.Cluster] = true
		}
	}
	return nil
}

// Distrust is the refusal to approve an untrusted request.
func Distrust(q Request, hub *fleet.Cluster) error {
	fix := q.fix
	if fix == nil {
		fix = DenyRequest.On(hub, "cluster", q.Cluster, "user", q.User)
	}
	return fleet.Refuse(fmt.Sprintf("the request %s of cluster %q cannot be trusted", q.Name, q.Cluster), q.Reason, fix)
}
