// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"context"
	"errors"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// An OCM agent sends no request while the hub holds ten labelled with its cluster, whatever
// their state and sender, and it waits for a denied request until it is gone.
// kube-controller-manager deletes denied requests after an hour and open ones after a day. So
// leftovers are deleted earlier, by these times and limits, and those no agent can be waiting
// for go first.
const (
	// retention is how long an answer can be read, and how long a request without the form of
	// an agent's request is kept.
	retention = 10 * time.Minute
	// strangeness is how long the request of another cluster's agent is kept for inspection.
	strangeness = 2 * time.Minute
	// readable is how long a request is kept in any crowd: of two sent in the same second it
	// is unknown which one their agent waits for, and an agent whose request is deleted asks
	// again at once.
	readable = 10 * time.Second
	// crowd is the number of requests from which more of them are deleted: two before agents
	// stop asking.
	crowd = 8
	// spared is how many requests of each sender are kept in a crowd.
	spared = 3
	// maxLeftovers is how many requests one pass deletes.
	maxLeftovers = 32
)

// sweep is the search for leftovers among the requests of one cluster.
type sweep struct {
	now  time.Time
	gone map[int]bool
	next time.Duration
}

// leftovers returns the requests to delete, and when the next one is due; zero means never.
// Requests no agent waits for are kept only briefly: those of agents of other clusters, and
// those of agents and join tokens in a form that is never answered. An open request is
// deleted when the same sender asked for the same agent again later, because an agent waits
// for one request only. In a crowd each sender keeps its last few, and an agent that still
// waits for another asks again; of users' requests with another form, which may have another
// purpose, only old ones are deleted then.
func leftovers(s State) ([]*certificatesv1.CertificateSigningRequest, time.Duration) {
	w := sweep{now: s.Now, gone: map[int]bool{}}
	later, issued := map[string]time.Time{}, map[string]bool{}
	var idle, spare []int // newest first
	for i, r := range slices.Backward(s.Requests) {
		if r.CSR.DeletionTimestamp != nil {
			w.gone[i] = true
			continue
		}
		if life := lifeOf(r); life > 0 {
			w.deleteAt(i, answeredAt(r.CSR).Add(life))
			idle = append(idle, i)
			continue
		}
		if r.Fault != nil {
			continue
		}
		key := senderKey(r) + "\x00" + r.Agent.Name
		newer, superseded := later[key]
		switch {
		case r.Expires != nil && issued[r.Agent.Name]:
			w.deleteAt(i, answeredAt(r.CSR).Add(retention))
			spare = append(spare, i)
		case refused(r.CSR) != nil:
			w.deleteAt(i, answeredAt(r.CSR).Add(retention))
		case !isAnswered(r.CSR) && superseded:
			w.deleteAt(i, newer.Add(retention))
		}
		issued[r.Agent.Name] = issued[r.Agent.Name] || r.Expires != nil
		later[key] = r.CSR.CreationTimestamp.Time
	}
	w.thinOut(s, idle, spare)
	return w.pickDue(s)
}

// lifeOf returns how long a request that no agent waits for is kept; zero for all others, and
// for requests that were approved anyway.
func lifeOf(r Request) time.Duration {
	switch from := originOf(r); {
	case wasApproved(r.CSR):
	case from == stranger:
		return strangeness
	case r.Fault != nil && from != person:
		return retention
	}
	return 0
}

// deleteAt deletes the request from at on.
func (w *sweep) deleteAt(i int, at time.Time) {
	if wait := at.Sub(w.now); wait <= 0 {
		w.gone[i] = true
	} else if w.next == 0 || wait < w.next {
		w.next = wait
	}
}

// thinOut makes room in a crowd: first requests that no agent waits for or that were denied,
// then those whose certificates a newer one replaced, then open ones; oldest first, and never
// the last few of each sender.
func (w *sweep) thinOut(s State, idle, spare []int) {
	excess := len(s.Requests) - len(w.gone) - crowd + 1
	take := func(list []int, at func(csr *certificatesv1.CertificateSigningRequest) time.Time) {
		for _, i := range slices.Backward(list) {
			if excess > 0 && !w.gone[i] {
				w.deleteAt(i, at(s.Requests[i].CSR))
				excess--
			}
		}
	}
	kept := map[string]int{}
	open := w.beyondSpared(s, kept, func(r Request) bool { return r.Fault == nil && !isAnswered(r.CSR) })
	denied := w.beyondSpared(s, kept, func(r Request) bool { return r.Fault == nil && refused(r.CSR) != nil })
	foreign := w.beyondSpared(s, kept, func(r Request) bool { return r.Fault != nil && !isAnswered(r.CSR) })
	atOnce := func(*certificatesv1.CertificateSigningRequest) time.Time { return w.now }
	take(idle, atOnce)
	take(denied, atOnce)
	take(spare, func(csr *certificatesv1.CertificateSigningRequest) time.Time { return answeredAt(csr).Add(readable) })
	take(open, func(csr *certificatesv1.CertificateSigningRequest) time.Time {
		return csr.CreationTimestamp.Add(readable)
	})
	take(foreign, func(csr *certificatesv1.CertificateSigningRequest) time.Time {
		return csr.CreationTimestamp.Add(retention)
	})
}

// beyondSpared returns, newest first, the requests of a kind that are not among the last few of
// their senders. Requests no agent waits for are not included.
func (w *sweep) beyondSpared(s State, kept map[string]int, kind func(Request) bool) []int {
	var out []int
	for i, r := range slices.Backward(s.Requests) {
		if lifeOf(r) > 0 || w.gone[i] || !kind(r) {
			continue
		}
		if kept[senderKey(r)]++; kept[senderKey(r)] > spared {
			out = append(out, i)
		}
	}
	return out
}

// pickDue returns the requests this pass deletes, oldest first.
func (w *sweep) pickDue(s State) ([]*certificatesv1.CertificateSigningRequest, time.Duration) {
	var out []*certificatesv1.CertificateSigningRequest
	for i, r := range s.Requests {
		if !w.gone[i] || r.CSR.DeletionTimestamp != nil {
			continue
		}
		if len(out) == maxLeftovers {
			return out, soon
		}
		out = append(out, r.CSR)
	}
	return out, w.next
}

const (
	// maxStrays is how many requests for clusters that do not exist are kept. An agent
	// creates its ManagedCluster before it asks or soon after; anyone with a join token may
	// ask for any number of names, and each name is a crowd of its own.
	maxStrays = 500
	// maxSwept is how many of them one pass deletes.
	maxSwept = 200
)

// strays is the key of the pass over them; no cluster key has a namespace.
var strays = reconcile.Key{Namespace: "*", Name: "strays"}

// sweepStrays deletes the oldest requests for clusters that do not exist beyond maxStrays. An
// agent that still waits for one of them asks again.
func (c *Controller) sweepStrays(ctx context.Context) (reconcile.Result, error) {
	var found []Request
	for _, cluster := range c.requests.Clusters() {
		mc, err := hub.FindCluster(ctx, c.reader, cluster, manager.NotCopied)
		if err != nil {
			return reconcile.Result{}, err
		}
		if mc == nil {
			found = append(found, c.requests.Of(cluster)...)
		}
	}
	surplus := surplusOf(found)
	result := reconcile.Result{}
	if len(surplus) > maxSwept {
		surplus, result.RequeueAfter = surplus[:maxSwept], time.Millisecond
	}
	var errs []error
	for _, csr := range surplus {
		errs = append(errs, c.deleteRequest(ctx, csr))
	}
	return result, errors.Join(errs...)
}

// surplusOf returns which of the requests of nonexistent clusters to delete, oldest first.
// Requests that were approved, or may have another purpose, are not counted and stay.
func surplusOf(found []Request) []*certificatesv1.CertificateSigningRequest {
	found = slices.DeleteFunc(slices.Clone(found), func(r Request) bool {
		return r.CSR.DeletionTimestamp != nil || wasApproved(r.CSR) || (r.Fault != nil && originOf(r) == person)
	})
	slices.SortFunc(found, inOrder)
	var out []*certificatesv1.CertificateSigningRequest
	for _, r := range found[:max(len(found)-maxStrays, 0)] {
		out = append(out, r.CSR)
	}
	return out
}
