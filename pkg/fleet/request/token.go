// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

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
