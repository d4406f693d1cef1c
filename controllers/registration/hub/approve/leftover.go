// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/identity"
)

// Agents send no request while the hub holds ten of their cluster, whatever
// their state (registration.md 3.4), and an agent of OCM waits for a denied one
// until it is gone, which kube-controller-manager sees to after an hour; open
// ones stay for a day. So leftovers go earlier, by these times and numbers.
const (
	// retention is how long an answer stays to be read, and how long an open
	// request is left alone whatever else is asked.
	retention = 10 * time.Minute
	// readable is how long a certificate stays for its agent to read in any crowd: of
	// two requests of one second nobody can tell which one it waits for.
	readable = 10 * time.Second
	// crowd is the number of requests from which on more of them go: two before
	// agents stop asking.
	crowd = 8
	// spared is how many open requests of one sender stay in a crowd.
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

// leftovers returns the requests to delete, and when the next one is due; zero
// is never. Only what was sent for an agent of the cluster, or by one who may
// ask for one, is ever deleted: other people's requests stay. An open request
// goes when the same sender asked for the same agent again later, because an
// agent waits for one request only; in a crowd also when it is among the oldest,
// and then an agent that still waits for it asks anew (registration.md 3.4).
func leftovers(s State) ([]*certificatesv1.CertificateSigningRequest, time.Duration) {
	w := sweep{now: s.Now, gone: map[int]bool{}}
	later, issued := map[string]time.Time{}, map[string]bool{}
	var spare []int
	for i, r := range slices.Backward(s.Requests) {
		if r.CSR.DeletionTimestamp != nil {
			w.gone[i] = true
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
			if superseded || refused(r.CSR).Reason != clusterv1.ReasonDuplicateClusterName {
				w.due(i, answeredAt(r.CSR).Add(retention))
			}
		case !answered(r.CSR) && superseded:
			w.due(i, newer.Add(retention))
		}
		issued[r.Agent.Name] = issued[r.Agent.Name] || r.Certificate != nil
		later[key] = r.CSR.CreationTimestamp.Time
	}
	w.thin(s, spare)
	return w.pick(s)
}

// due takes the request away from at on.
func (w *sweep) due(i int, at time.Time) {
	if wait := at.Sub(w.now); wait <= 0 {
		w.gone[i] = true
	} else if w.next == 0 || wait < w.next {
		w.next = wait
	}
}

// thin makes room in a crowd: first certificates that a newer one replaced, then
// the oldest open requests, sender by sender.
func (w *sweep) thin(s State, spare []int) {
	excess := len(s.Requests) - len(w.gone) - crowd + 1
	// Oldest first.
	for _, i := range slices.Backward(spare) {
		if excess > 0 && !w.gone[i] {
			w.due(i, answeredAt(s.Requests[i].CSR).Add(readable))
			excess--
		}
	}
	if excess <= 0 {
		return
	}
	open, kept := []int{}, map[string]int{}
	for i, r := range slices.Backward(s.Requests) {
		if w.gone[i] || answered(r.CSR) || (r.Fault != nil && !asks(r)) {
			continue
		}
		if kept[sender(r)]++; kept[sender(r)] > spared {
			open = append(open, i)
		}
	}
	for _, i := range slices.Backward(open) {
		if excess <= 0 {
			return
		}
		w.due(i, s.Requests[i].CSR.CreationTimestamp.Add(retention))
		excess--
	}
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

// sender tells requests of one sender from those of others: by the user, and by
// the token where one user stands for many. An agent that renews is one sender
// whichever of its certificates it shows.
func sender(r Request) string {
	spec := &r.CSR.Spec
	if spec.Username == r.Agent.User() {
		return spec.Username
	}
	return spec.Username + "\x00" + strings.Join(spec.Extra[clusterv1.ExtraCredentialID], "\x00")
}

// asks tells whether the sender of a request that is of no known form is one who
// asks for agents of this cluster.
func asks(r Request) bool {
	spec := &r.CSR.Spec
	agent, ok := identity.ParseUser(spec.Username)
	return spec.Username == identity.BootstrapUser || slices.Contains(spec.Groups, clusterv1.GroupBootstrap) ||
		(ok && agent.Cluster == r.CSR.Labels[clusterv1.LabelClusterName])
}
