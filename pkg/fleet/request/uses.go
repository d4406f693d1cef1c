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

// counted is the token as its uses are counted.
func (t *Token) counted() identity.JoinToken {
	return identity.JoinToken{ID: t.ID, Credential: t.credential, Limit: t.Limit}
}

// noted is by which tokens clusters joined, as the hub noted it.
func noted(clusters []unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for i := range clusters {
		if id := clusters[i].GetAnnotations()[clusterv1.AnnotationJoinedBy]; id != "" {
			out[clusters[i].GetName()] = id
		}
	}
	return out
}

// approvals are the requests that have a certificate or are about to get it.
func approvals(requests []unstructured.Unstructured) []identity.Approval {
	var out []identity.Approval
	for i := range requests {
		if state := StateOf(&requests[i]); state == StateApproved || state == StateIssued {
			out = append(out, identity.Approval{Cluster: requests[i].GetLabels()[clusterv1.LabelClusterName], Credentials: credentials(&requests[i])})
		}
	}
	return out
}

// Uses counts the uses of tokens with a limit while clusters are let in.
type Uses struct {
	mu sync.Mutex
	// hub is where the tokens are.
	hub *fleet.Cluster
	// tokens are those with a limit.
	tokens []Token
	// users are the clusters that used each, by id.
	users map[string]map[string]bool
}

// ReadUses counts the uses of the tokens with a limit; where there is none it
// asks nothing. Who may not list clusters counts what requests tell; the hub
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
	names, approved := noted(clusters), approvals(requests)
	for _, t := range out.tokens {
		out.users[t.ID] = t.counted().Users(names, approved)
	}
	return out, nil
}

// full returns the token of a request that others used up; nil where it is good.
func (u *Uses) full(q Request) *Token {
	for i := range u.tokens {
		if t := &u.tokens[i]; t.Used(q.Object) && !t.counted().Admits(q.Cluster, u.users[t.ID]) {
			return t
		}
	}
	return nil
}

// Mark tells of requests that wait why they cannot be approved.
func (u *Uses) Mark(requests []Request) {
	for i := range requests {
		if q := &requests[i]; q.State == StatePending {
			if t := u.full(*q); t != nil {
				q.State, q.Reason = StateUntrusted, t.counted().UsedUp()
				q.fix = TokenForCluster.On(u.hub, "cluster", q.Cluster)
			}
		}
	}
}

// Spend takes a use for a request that is about to be approved, or tells that
// others of the same command took the last one.
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

// Distrust is the refusal to approve a request that is not in order.
func Distrust(q Request, hub *fleet.Cluster) error {
	fix := q.fix
	if fix == nil {
		fix = DenyRequest.On(hub, "cluster", q.Cluster, "user", q.User)
	}
	return fleet.Refuse(fmt.Sprintf("the request %s of cluster %q cannot be trusted", q.Name, q.Cluster), q.Reason, fix)
}
