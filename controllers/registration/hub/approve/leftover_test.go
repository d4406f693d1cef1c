// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func names(list []*certificatesv1.CertificateSigningRequest) []string {
	var out []string
	for _, csr := range list {
		out = append(out, csr.Name)
	}
	return out
}

func TestLeftovers(t *testing.T) {
	denied := func(agent, reason, name string, created, answered int) Request {
		return at(answeredWith(agent, certificatesv1.CertificateDenied, reason), name, created, answered)
	}
	pending := func(agent, name string, created int) Request { return at(open(agent, false), name, created, 0) }
	issued := func(agent, name string, created int) Request {
		return got(at(answeredWith(agent, certificatesv1.CertificateApproved, "x"), name, created, created))
	}
	with := func(r Request, credential string) Request {
		r.CSR.Spec.Extra = map[string]certificatesv1.ExtraValue{clusterv1.ExtraCredentialID: {credential}}
		return r
	}
	foreign := func(name string, created int) Request {
		r := pending("", name, created)
		r.Agent, r.Fault, r.CSR.Spec.Username = identity.Agent{}, identity.ErrNoAgentRequest, "alice"
		return r
	}
	rubbish := func(name string, created int) Request {
		r := foreign(name, created)
		r.CSR.Spec.Username = identity.BootstrapUser
		return r
	}
	stranger := func(name string, created int) Request {
		r := foreign(name, created)
		r.CSR.Spec.Username, r.CSR.Spec.Groups = clusterv1.UserPrefix+"c2:a", []string{
			clusterv1.UserPrefix + "c2", clusterv1.GroupManagedClusters,
		}
		return r
	}
	shaped := func(name string, created int) Request {
		r := stranger(name, created)
		r.Fault, r.Agent = nil, identity.Agent{Cluster: "c1", Name: "a"}
		return r
	}
	failed := func(r Request) Request {
		r.CSR.Status.Conditions = append(r.CSR.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateFailed})
		return r
	}
	approvedAll := func(name string, created int) Request {
		r := shaped(name, created)
		r.CSR.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateApproved},
		}
		return got(r)
	}
	repeat := func(n int, one func(i int) Request) (out []Request) {
		for i := range n {
			out = append(out, one(i))
		}
		return out
	}
	label := map[string]string{clusterv1.LabelClusterName: "c1"}
	for name, tc := range map[string]struct {
		requests []Request
		want     []string
		next     time.Duration
	}{
		"nothing":                             {},
		"an open request stays, however long": {requests: []Request{pending("a", "r1", -2000)}},
		"two agents may both be alive": {
			requests: []Request{pending("a", "r1", -200), pending("b", "r2", -100)},
		},
		"the same agent by two tokens may be two": {
			requests: []Request{with(pending("a", "r1", -200), "JTI=1"), with(pending("a", "r2", -100), "JTI=2")},
		},
		"an agent waits for its last request only": {
			requests: []Request{pending("a", "r1", -200), pending("a", "r2", -100)},
			want:     []string{"r1"},
		},
		"though not at once": {
			requests: []Request{pending("a", "r1", -200), pending("a", "r2", -4)},
			next:     6 * time.Minute,
		},
		"a denied one stays to be read": {
			requests: []Request{denied("a", "x", "r1", -60, -3)},
			next:     7 * time.Minute,
		},
		"and is deleted then": {
			requests: []Request{denied("a", "x", "r1", -60, -10)},
			want:     []string{"r1"},
		},
		"a certificate stays": {requests: []Request{issued("a", "r1", -50)}},
		"unless there is a newer one": {
			requests: []Request{issued("a", "r1", -50), issued("a", "r2", -40)},
			want:     []string{"r1"},
		},
		"also where that came by a renewal": {
			requests: []Request{with(issued("a", "r1", -50), "JTI=1"), with(issued("a", "r2", -40), "X509SHA256=2")},
			want:     []string{"r1"},
		},
		"short certificates make room in a crowd": {
			requests: repeat(9, func(i int) Request { return issued("a", fmt.Sprint("r", i), -5) }),
			want:     []string{"r0", "r1"},
			next:     5 * time.Minute,
		},
		"but not before agents could read them": {
			requests: repeat(9, func(i int) Request { return issued("a", fmt.Sprint("r", i), 0) }),
			next:     readable,
		},
		"seven are no crowd": {
			requests: repeat(7, func(i int) Request { return pending(fmt.Sprint("a", i), fmt.Sprint("r", i), -60) }),
		},
		"restarts under new names make room": {
			requests: repeat(9, func(i int) Request { return pending(fmt.Sprint("a", i), fmt.Sprint("r", i), -60) }),
			want:     []string{"r0", "r1"},
		},
		"but not those that just came": {
			requests: repeat(9, func(i int) Request { return pending(fmt.Sprint("a", i), fmt.Sprint("r", i), 0) }),
			next:     readable,
		},
		"denied ones make room at once": {
			requests: repeat(
				9, func(i int) Request { return denied(fmt.Sprint("a", i), "x", fmt.Sprint("r", i), 0, 0) },
			),
			want: []string{"r0", "r1"},
			next: retention,
		},
		"malformed requests of agents and joiners stay a while": {
			requests: []Request{rubbish("r1", -4)},
			next:     6 * time.Minute,
		},
		"and are deleted then, crowd or not": {requests: []Request{rubbish("r1", -10)}, want: []string{"r1"}},
		"in a crowd at once": {
			requests: repeat(9, func(i int) Request { return rubbish(fmt.Sprint("r", i), 0) }),
			want:     []string{"r0", "r1"},
			next:     retention,
		},
		"what another cluster's agent sends is a stranger's": {
			requests: []Request{stranger("r1", -1)},
			next:     time.Minute,
		},
		"and goes in minutes":          {requests: []Request{stranger("r1", -2)}, want: []string{"r1"}},
		"whatever form it has":         {requests: []Request{shaped("r1", -2)}, want: []string{"r1"}},
		"but not when it was approved": {requests: []Request{approvedAll("r1", -30)}},
		"even if the signer failed then": {
			requests: []Request{failed(approvedAll("r1", 0))},
			next:     retention,
		},
		"strangers make room before all others": {
			requests: append(
				repeat(7, func(i int) Request { return pending(fmt.Sprint("a", i), fmt.Sprint("r0", i), -60) }),
				repeat(10, func(i int) Request { return stranger(fmt.Sprint("s", i), 0) })...,
			),
			want: []string{"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"},
			next: strangeness,
		},
		"few of other people never go": {
			requests: repeat(7, func(i int) Request { return foreign(fmt.Sprint("r", i), -600) }),
		},
		"nor do new ones": {
			requests: repeat(9, func(i int) Request { return foreign(fmt.Sprint("r", i), -4) }),
			next:     6 * time.Minute,
		},
		"old ones of theirs go in a crowd, but the last": {
			requests: repeat(9, func(i int) Request { return foreign(fmt.Sprint("r", i), -600) }),
			want:     []string{"r0", "r1"},
		},
		"a flood by one token spares another token": {
			requests: append(
				[]Request{with(pending("good", "r00", -600), "JTI=1")},
				repeat(
					9,
					func(i int) Request { return with(pending(fmt.Sprint("a", i), fmt.Sprint("r", i), -60), "JTI=2") },
				)...,
			),
			want: []string{"r0", "r1", "r2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range tc.requests {
				r.CSR.Labels = label
			}
			slices.SortFunc(tc.requests, inOrder)
			got, next := leftovers(State{Requests: tc.requests, Now: now})
			require.Equal(t, tc.want, names(got))
			require.Equal(t, tc.next, next)
		})
	}
	t.Run("a pass is bounded", func(t *testing.T) {
		got, next := leftovers(State{
			Requests: repeat(500, func(i int) Request { return pending("a", fmt.Sprintf("r%03d", i), -60) }),
			Now:      now,
		})
		require.Len(t, got, maxLeftovers)
		require.Equal(t, soon, next)
	})
	t.Run("also where no ManagedCluster is", func(t *testing.T) {
		require.Equal(
			t, []string{"r1"},
			names(Decide(State{Requests: []Request{denied("a", "x", "r1", -60, -10)}, Now: now}).Leftovers),
		)
	})
}

// A sender is identified by what the API server recorded on the request; its labels and its
// content are chosen by the sender.
func TestWhoSentARequestIsNotWhatItSays(t *testing.T) {
	const p = clusterv1.UserPrefix
	for name, tc := range map[string]struct {
		user   string
		groups []string
		want   origin
	}{
		"an agent of the cluster":         {p + "c1:a", []string{p + "c1", clusterv1.GroupManagedClusters}, ownAgent},
		"by EKS":                          {"c1", []string{clusterv1.GroupPrefixEKS + "c1"}, ownAgent},
		"an agent of another one":         {p + "c2:a", []string{p + "c2", clusterv1.GroupManagedClusters}, stranger},
		"of a longer name":                {p + "c10:a", []string{p + "c10", clusterv1.GroupManagedClusters}, stranger},
		"of none":                         {"x", []string{clusterv1.GroupManagedClusters}, stranger},
		"of two":                          {p + "c1:a", []string{p + "c1", p + "c2"}, stranger},
		"by its name alone":               {p + "c1:a", nil, ownAgent},
		"by another name alone":           {p + "c2:a", nil, stranger},
		"a join token":                    {identity.BootstrapUser, nil, joiner},
		"a bootstrap token":               {"system:bootstrap:abcdef", []string{clusterv1.GroupBootstrap}, joiner},
		"one that is for another cluster": {"x", []string{clusterv1.GroupPrefixBootstrapCluster + "c2"}, joiner},
		"the agent of an add-on counts as a person": {
			p + "cluster:c1:addon:x:agent:x",
			[]string{p + "cluster:c1:addon:x"},
			person,
		},
		"a person": {"ann", []string{"system:authenticated"}, person},
	} {
		t.Run(name, func(t *testing.T) {
			r := open("a", false)
			r.CSR.Labels = map[string]string{clusterv1.LabelClusterName: "c1"}
			r.CSR.Spec.Username, r.CSR.Spec.Groups = tc.user, tc.groups
			require.Equal(t, tc.want, originOf(r))
		})
	}
}
