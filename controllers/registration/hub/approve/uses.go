// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"cmp"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// spentFor is how long a use counts that this process is about to approve: by then the cache
// shows the approval, or there was none.
const spentFor = time.Minute

// use is one cluster joining with the token of a credential.
type use struct{ credential, cluster string }

// uses holds the uses of join tokens that the requests do not show. It is safe for concurrent
// use.
type uses struct {
	mu sync.Mutex
	// noted holds the id of the token each cluster joined with.
	noted map[string]string
	// spent holds when each use was reserved.
	spent map[use]time.Time
}

func newUses() *uses { return &uses{noted: map[string]string{}, spent: map[use]time.Time{}} }

// observe records a change of a cluster.
func (u *uses) observe(old, current *clusterv1.ManagedCluster) {
	u.mu.Lock()
	defer u.mu.Unlock()
	mc := cmp.Or(current, old)
	if id := mc.Annotations[clusterv1.AnnotationJoinedBy]; current != nil && id != "" {
		u.noted[mc.Name] = id
	} else {
		delete(u.noted, mc.Name)
	}
}

// admits reports whether a cluster may join with a token, given the clusters whose approvals
// the cache shows and those about to be approved.
func (u *uses) admits(t Token, cluster string, approved []string, now time.Time) bool {
	for s, at := range u.spent {
		switch {
		case now.Sub(at) > spentFor:
			delete(u.spent, s)
		case s.credential == t.Credential:
			approved = append(approved, s.cluster)
		}
	}
	var approvals []identity.Approval
	for _, c := range approved {
		approvals = append(approvals, identity.Approval{Cluster: c, Credentials: []string{t.Credential}})
	}
	return t.Admits(cluster, t.Users(u.noted, approvals))
}

// admitting returns a function that reports whether a cluster may join with a token; it
// counts each token once.
func (c *Controller) admitting(cluster string) func(Token) bool {
	known := map[Token]bool{}
	return func(t Token) bool {
		if t.Limit == 0 {
			return true
		}
		if _, ok := known[t]; !ok {
			approved := c.requests.With(t.Credential, isApproved)
			c.uses.mu.Lock()
			known[t] = c.uses.admits(t, cluster, approved, c.config.Clock.Now())
			c.uses.mu.Unlock()
		}
		return known[t]
	}
}

// reserveUses reserves a use of each token for a cluster, or none and returns false when other
// workers were faster. A reserved use that is never approved becomes free again.
func (c *Controller) reserveUses(cluster string, tokens []Token) bool {
	if len(tokens) == 0 {
		return true
	}
	c.uses.mu.Lock()
	defer c.uses.mu.Unlock()
	now := c.config.Clock.Now()
	for _, t := range tokens {
		if !c.uses.admits(t, cluster, c.requests.With(t.Credential, isApproved), now) {
			return false
		}
	}
	for _, t := range tokens {
		c.uses.spent[use{t.Credential, cluster}] = now
	}
	return true
}

// rivals returns the clusters waiting with a limited token of which another cluster has just
// used one use.
func (c *Controller) rivals(old, current *certificatesv1.CertificateSigningRequest) []string {
	if current == nil || !isApproved(current) || (old != nil && isApproved(old)) {
		return nil
	}
	var out []string
	for _, credential := range current.Spec.Extra[clusterv1.ExtraCredentialID] {
		if t, ok := c.tokens.Get(credential); ok && t.Limit != 0 {
			out = append(out, c.requests.With(credential, isOpen)...)
		}
	}
	return out
}
