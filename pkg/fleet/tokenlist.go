// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/identity"
)

// TokenInfo is one join token, without its secret.
type TokenInfo struct {
	// ID names it for revoke.
	ID string `json:"id"`
	// Type is "serviceaccount" or "bootstrap".
	Type string `json:"type"`
	// Expires is when it ends; zero when it never does.
	Expires metav1.Time `json:"expires"`
	// Uses counts the certificate requests made with it that are still stored.
	Uses int `json:"uses"`
	// Limit is how many clusters may join with it; 0 means any number, and less that
	// the limit cannot be read, so that nobody new may.
	Limit int `json:"limit,omitempty"`
	// Cluster is the only cluster it is for; empty means any.
	Cluster string `json:"cluster,omitempty"`
	// Joined are the clusters that were let in by it, as far as the hub noted it
	// or still stores their requests; the last token of each counts.
	Joined []string `json:"joined,omitempty"`
	// Created is when it was made.
	Created metav1.Time `json:"created"`
	// Expired tells that it has ended already.
	Expired bool `json:"expired"`

	credential string
	object     *unstructured.Unstructured
}

// TokenListOptions say where to look for tokens.
type TokenListOptions struct {
	Common
	// Hub is where the tokens are.
	Hub *Cluster
}

// ListTokens lists the join tokens of a hub, by id. It makes four requests.
func ListTokens(ctx context.Context, o TokenListOptions) ([]TokenInfo, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	tokens, err := readTokens(ctx, o.Hub, r.now())
	if err != nil {
		return nil, err
	}
	requests, err := listAll(ctx, o.Hub, query{resource: signingRequests, labels: clusterv1.LabelClusterName})
	if err != nil {
		return nil, explain("listing certificate requests", o.Hub, err)
	}
	clusters, err := listAll(ctx, o.Hub, query{resource: managedClusters})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, explain("listing managedclusters", o.Hub, err)
	}
	for i := range tokens {
		tokens[i].count(requests, clusters)
	}
	return tokens, nil
}

// count notes what was done with a token.
func (t *TokenInfo) count(requests, clusters []unstructured.Unstructured) {
	for i := range requests {
		if t.used(&requests[i]) {
			t.Uses++
		}
	}
	t.Joined = slices.Sorted(maps.Keys(t.counted().Users(noted(clusters), approvals(requests))))
}

// readTokens reads the Secrets of both sorts of tokens.
func readTokens(ctx context.Context, hub *Cluster, now time.Time) ([]TokenInfo, error) {
	own, err := listAll(ctx, hub, query{resource: secrets, namespace: operatorv1.NamespaceOperator, labels: clusterv1.LabelJoinToken})
	if err != nil {
		return nil, explain("listing tokens", hub, err)
	}
	bootstrap, err := listAll(ctx, hub, query{resource: secrets, namespace: metav1.NamespaceSystem, labels: "app=" + operatorv1.DefaultClusterManagerName})
	if err != nil {
		return nil, explain("listing bootstrap tokens", hub, err)
	}
	var out []TokenInfo
	for i := range own {
		out = append(out, tokenInfo(&own[i], now))
	}
	for i := range bootstrap {
		if kind, _, _ := unstructured.NestedString(bootstrap[i].Object, "type"); kind == "bootstrap.kubernetes.io/token" {
			out = append(out, bootstrapInfo(&bootstrap[i], now))
		}
	}
	slices.SortFunc(out, func(a, b TokenInfo) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func tokenInfo(u *unstructured.Unstructured, now time.Time) TokenInfo {
	t := TokenInfo{ID: u.GetLabels()[clusterv1.LabelJoinToken], Type: "serviceaccount", Created: u.GetCreationTimestamp(), object: u,
		Cluster: secretValue(u, clusterv1.JoinTokenKeyCluster), credential: secretValue(u, clusterv1.JoinTokenKeyCredentialID),
		Limit: identity.ParseUses(secretValue(u, clusterv1.JoinTokenKeyUses))}
	t.expiry(secretValue(u, clusterv1.JoinTokenKeyExpiration), now)
	return t
}

func bootstrapInfo(u *unstructured.Unstructured, now time.Time) TokenInfo {
	t := TokenInfo{ID: secretValue(u, "token-id"), Type: "bootstrap", Created: u.GetCreationTimestamp(), object: u}
	t.credential = bootstrapUserPrefix + t.ID
	for _, group := range strings.Split(secretValue(u, "auth-extra-groups"), ",") {
		if name, ok := strings.CutPrefix(group, clusterv1.GroupPrefixBootstrapCluster); ok {
			t.Cluster = name
		}
	}
	t.expiry(secretValue(u, "expiration"), now)
	return t
}

func (t *TokenInfo) expiry(text string, now time.Time) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		t.Expires, t.Expired = metav1.NewTime(at), !at.After(now)
	}
}

// used tells whether a certificate request was made with this token.
func (t *TokenInfo) used(csr *unstructured.Unstructured) bool {
	return t.credential != "" && slices.Contains(credentials(csr), t.credential)
}

// bootstrapUserPrefix, followed by its id, is the user of a bootstrap token.
const bootstrapUserPrefix = "system:bootstrap:"

// credentials returns what a request's user was known by: the credential ids, or
// the name that a bootstrap token gives.
func credentials(csr *unstructured.Unstructured) []string {
	out, _, _ := unstructured.NestedStringSlice(csr.Object, "spec", "extra", clusterv1.ExtraCredentialID)
	if user, _, _ := unstructured.NestedString(csr.Object, "spec", "username"); strings.HasPrefix(user, bootstrapUserPrefix) {
		out = append(out, user)
	}
	return out
}

// RevokeOptions say which token to end.
type RevokeOptions struct {
	Common
	// Hub is where the token is valid.
	Hub *Cluster
	// ID is the id that ListTokens shows.
	ID string
}

// RevokeToken ends a token (the API server may remember it for ten seconds) and
// denies the requests that were made with
// it and are not answered yet. Clusters that have joined are not touched.
func RevokeToken(ctx context.Context, o RevokeOptions) ([]Change, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	tokens, err := readTokens(ctx, o.Hub, r.now())
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tokens, func(t TokenInfo) bool { return t.ID == o.ID })
	if i < 0 {
		return nil, noToken(o.ID, o.Hub)
	}
	out := []Change{{Object: reference(tokens[i].object), Action: Deleted}}
	if o.reads() {
		return out, nil
	}
	if err := remove(ctx, o.Hub, tokens[i].object); err != nil {
		return nil, explain("deleting the token's secret", o.Hub, err)
	}
	requests, err := listAll(ctx, o.Hub, query{resource: signingRequests, labels: clusterv1.LabelClusterName})
	if err != nil {
		return out, explain("listing certificate requests", o.Hub, err)
	}
	for j := range requests {
		if csr := &requests[j]; tokens[i].used(csr) && !answered(csr) {
			err := answer(ctx, o.Hub, csr, denial(clusterv1.ReasonTokenRevoked, fmt.Sprintf("it was sent with join token %s, which was revoked; make one for this cluster on the hub, "+
				"and join with it: kubectl ocm hub token create", o.ID), r.now()))
			if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
				continue // the hub denies them too, and was faster
			}
			if err != nil {
				return out, explain("denying "+csr.GetName(), o.Hub, err)
			}
			out = append(out, Change{Object: reference(csr), Action: Configured})
		}
	}
	return out, nil
}

// clearExpired deletes the Secrets of tokens that have ended. What fails is left
// for the next time.
func clearExpired(ctx context.Context, hub *Cluster, now time.Time) {
	tokens, err := readTokens(ctx, hub, now)
	if err != nil {
		return
	}
	for i := range tokens {
		if tokens[i].Expired {
			_ = remove(ctx, hub, tokens[i].object)
		}
	}
}

func secretValue(u *unstructured.Unstructured, key string) string {
	text, _, _ := unstructured.NestedString(u.Object, "data", key)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	return string(raw)
}
