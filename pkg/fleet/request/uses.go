// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

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
	out := &Uses{hub: hub, users: map[string]map[string]bool{}}
	for _, t := range tokens {
		if t.Limit != 0 {
			out.tokens = append(out.tokens, t)
		}
	}
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
