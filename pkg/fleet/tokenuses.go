// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/identity"
)

// CheckUses tells why there can be no token that is for a number of clusters. It
// asks no server.
func CheckUses(uses int, bootstrap bool) error {
	if err := identity.CheckUses(uses); err != nil {
		return usage(fmt.Sprintf("a token cannot be for %d clusters", uses), err.Error(), "for example --uses 1; without --uses it is for any number")
	}
	if bootstrap {
		return usage("a bootstrap token cannot be for a number of clusters", "it is a Secret of Kubernetes, which has no place for a limit",
			"leave out --use-bootstrap-token, or bind the token to one cluster by --cluster NAME")
	}
	return nil
}

// counted is the token as its uses are counted.
func (t *TokenInfo) counted() identity.JoinToken {
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
		if state := stateOf(&requests[i]); state == StateApproved || state == StateIssued {
			out = append(out, identity.Approval{Cluster: requests[i].GetLabels()[clusterv1.LabelClusterName], Credentials: credentials(&requests[i])})
		}
	}
	return out
}

// tokenUses counts the uses of tokens with a limit while clusters are let in.
type tokenUses struct {
	mu sync.Mutex
	// hub is where the tokens are.
	hub *Cluster
	// tokens are those with a limit.
	tokens []TokenInfo
	// users are the clusters that used each, by id.
	users map[string]map[string]bool
}

// readUses counts the uses of the tokens with a limit; where there is none it
// asks nothing. Who may not list clusters counts what requests tell; the hub
// counts all.
func readUses(ctx context.Context, hub *Cluster, tokens []TokenInfo, requests []unstructured.Unstructured) (*tokenUses, error) {
	out := &tokenUses{hub: hub, users: map[string]map[string]bool{}}
	for _, t := range tokens {
		if t.Limit != 0 {
			out.tokens = append(out.tokens, t)
		}
	}
	if len(out.tokens) == 0 {
		return out, nil
	}
	clusters, err := listAll(ctx, hub, query{resource: managedClusters})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, explain("listing managedclusters", hub, err)
	}
	names, approved := noted(clusters), approvals(requests)
	for _, t := range out.tokens {
		out.users[t.ID] = t.counted().Users(names, approved)
	}
	return out, nil
}

// full returns the token of a request that others used up; nil where it is good.
func (u *tokenUses) full(q Request) *TokenInfo {
	for i := range u.tokens {
		if t := &u.tokens[i]; t.used(q.object) && !t.counted().Admits(q.Cluster, u.users[t.ID]) {
			return t
		}
	}
	return nil
}

// mark tells of requests that wait why they cannot be approved.
func (u *tokenUses) mark(requests []Request) {
	for i := range requests {
		if q := &requests[i]; q.State == StatePending {
			if t := u.full(*q); t != nil {
				q.State, q.Reason = StateUntrusted, t.counted().UsedUp()
				q.fix = fmt.Sprintf("kubectl ocm hub token create --cluster %s%s      and join with that one", q.Cluster, u.hub.flag())
			}
		}
	}
}

// spend takes a use for a request that is about to be approved, or tells that
// others of the same command took the last one.
func (u *tokenUses) spend(q Request) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	marked := []Request{q}
	if u.mark(marked); marked[0].State == StateUntrusted {
		return untrusted(marked[0], u.hub)
	}
	for i := range u.tokens {
		if t := &u.tokens[i]; t.used(q.object) {
			u.users[t.ID][q.Cluster] = true
		}
	}
	return nil
}

// untrusted is the refusal to approve a request that is not in order.
func untrusted(q Request, hub *Cluster) error {
	fix := q.fix
	if fix == "" {
		fix = fmt.Sprintf("kubectl ocm accept %s --deny%s      or, if you know the sender: --requester %s", q.Cluster, hub.flag(), ShellWord(q.User))
	}
	return refused(fmt.Sprintf("the request %s of cluster %q cannot be trusted", q.Name, q.Cluster), q.Reason, fix)
}
