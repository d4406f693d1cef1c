// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// An agent of OCM sends no request while the hub holds ten with the label of its
// cluster, whatever their state and whoever sent them, and it waits for a denied
// one until that is gone, which kube-controller-manager sees to after an hour;
// open ones stay for a day. So leftovers go earlier, by these times and numbers,
// and what an agent cannot wait for goes first.
const (
	// retention is how long an answer stays to be read, and how long what has not
	// the form of an agent's request stays.
	retention = 10 * time.Minute
	// strangeness is how long the request of another cluster's agent stays to be
	// looked at.
	strangeness = 2 * time.Minute
	// readable is how long a request stays in any crowd: of two of one second nobody
	// can tell which one their agent waits for, and an agent whose request went asks
	// again at once.
	readable = 10 * time.Second
	// crowd is the number of requests from which on more of them go: two before
	// agents stop asking.
	crowd = 8
	// spared is how many requests of one sender stay in a crowd.
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

// leftovers returns the requests to delete, and when the next one is due; zero is
// never. What nobody waits for has a short time: requests of agents of other
// clusters, and those that agents and join tokens sent in no form that is ever
// answered. An open request goes when the same sender asked for the same agent
// again later, because an agent waits for one request only. In a crowd each sender
// keeps its last few, and an agent that still waits for another asks anew; of
// people's that have another form, which may be for another purpose, only old ones
// go then.
func leftovers(s State) ([]*certificatesv1.CertificateSigningRequest, time.Duration) {
	w := sweep{now: s.Now, gone: map[int]bool{}}
	later, issued := map[string]time.Time{}, map[string]bool{}
	var spare []int
	for i, r := range slices.Backward(s.Requests) {
		if r.CSR.DeletionTimestamp != nil {
			w.gone[i] = true
			continue
		}
		if life, nobodys := lifeOf(r); nobodys {
			w.due(i, answeredAt(r.CSR).Add(life))
			continue
		}
		if r.Fault != nil {
			continue
		}
		key := sender(r) + "\x00" + r.Agent.Name
		newer, superseded := later[key]
		switch {
		case r.Certificate != nil && issued[r.Agent.Name]:
			w.due(i, answeredAt(r.CSR).Add(retention))
			spare = append(spare, i)
		case refused(r.CSR) != nil:
			w.due(i, answeredAt(r.CSR).Add(retention))
		case !answered(r.CSR) && superseded:
			w.due(i, newer.Add(retention))
		}
		issued[r.Agent.Name] = issued[r.Agent.Name] || r.Certificate != nil
		later[key] = r.CSR.CreationTimestamp.Time
	}
	w.thin(s, spare)
	return w.pick(s)
}

// lifeOf is how long a request stays that nobody waits for; nobodys is false for
// all others, and for what somebody approved all the same.
func lifeOf(r Request) (life time.Duration, nobodys bool) {
	if find(r.CSR, certificatesv1.CertificateApproved) != nil {
		return 0, false
	}
	switch from := originOf(r); {
	case from == stranger:
		return strangeness, true
	case r.Fault != nil && from != person:
		return retention, true
	}
	return 0, false
}

// due takes the request away from at on.
func (w *sweep) due(i int, at time.Time) {
	if wait := at.Sub(w.now); wait <= 0 {
		w.gone[i] = true
	} else if w.next == 0 || wait < w.next {
		w.next = wait
	}
}

// thin makes room in a crowd: first what nobody waits for and what was denied,
// then certificates that a newer one replaced, then open requests; the oldest
// first, and of each sender the last few never.
func (w *sweep) thin(s State, spare []int) {
	excess := len(s.Requests) - len(w.gone) - crowd + 1
	take := func(list []int, at func(csr *certificatesv1.CertificateSigningRequest) time.Time) {
		for _, i := range list {
			if excess > 0 && !w.gone[i] {
				w.due(i, at(s.Requests[i].CSR))
				excess--
			}
		}
	}
	kept := map[string]int{}
	open := w.beyond(s, kept, func(r Request) bool { return r.Fault == nil && !answered(r.CSR) })
	denied := w.beyond(s, kept, func(r Request) bool { return r.Fault == nil && refused(r.CSR) != nil })
	foreign := w.beyond(s, kept, func(r Request) bool { return r.Fault != nil && !answered(r.CSR) })
	idle := []int{}
	for i, r := range s.Requests {
		if _, nobodys := lifeOf(r); nobodys {
			idle = append(idle, i)
		}
	}
	slices.Reverse(spare)
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

// beyond returns, oldest first, the requests of a kind that are not among the
// last few of their senders. What nobody waits for is none of them.
func (w *sweep) beyond(s State, kept map[string]int, kind func(Request) bool) []int {
	var out []int
	for i, r := range slices.Backward(s.Requests) {
		if _, nobodys := lifeOf(r); nobodys || w.gone[i] || !kind(r) {
			continue
		}
		if kept[sender(r)]++; kept[sender(r)] > spared {
			out = append(out, i)
		}
	}
	slices.Reverse(out)
	return out
}

// pick returns what goes in this pass, oldest first.
func (w *sweep) pick(s State) ([]*certificatesv1.CertificateSigningRequest, time.Duration) {
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
