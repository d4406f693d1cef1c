// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/identity"
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
	repeat := func(n int, one func(i int) Request) (out []Request) {
		for i := range n {
			out = append(out, one(i))
		}
		return out
	}
	const twin = clusterv1.ReasonDuplicateClusterName
	for name, tc := range map[string]struct {
		requests []Request
		want     []string
		next     time.Duration
	}{
		"nothing":                                   {},
		"an open request stays, however long":       {requests: []Request{pending("a", "r1", -2000)}},
		"two agents may both be alive":              {requests: []Request{pending("a", "r1", -200), pending("b", "r2", -100)}},
		"the same agent by two tokens may be two":   {requests: []Request{with(pending("a", "r1", -200), "JTI=1"), with(pending("a", "r2", -100), "JTI=2")}},
		"an agent waits for its last request only":  {requests: []Request{pending("a", "r1", -200), pending("a", "r2", -100)}, want: []string{"r1"}},
		"though not at once":                        {requests: []Request{pending("a", "r1", -200), pending("a", "r2", -4)}, next: 6 * time.Minute},
		"a denied one stays to be read":             {requests: []Request{denied("a", "x", "r1", -60, -3)}, next: 7 * time.Minute},
		"and goes then":                             {requests: []Request{denied("a", "x", "r1", -60, -10)}, want: []string{"r1"}},
		"a denied twin stays while it is the last":  {requests: []Request{denied("b", twin, "r1", -60, -50)}},
		"not when it asked again":                   {requests: []Request{denied("b", twin, "r1", -60, -50), denied("b", twin, "r2", -40, -40)}, want: []string{"r1"}},
		"a certificate stays":                       {requests: []Request{issued("a", "r1", -50)}},
		"unless there is a newer one":               {requests: []Request{issued("a", "r1", -50), issued("a", "r2", -40)}, want: []string{"r1"}},
		"also where that came by a renewal":         {requests: []Request{with(issued("a", "r1", -50), "JTI=1"), with(issued("a", "r2", -40), "X509SHA256=2")}, want: []string{"r1"}},
		"short certificates make room in a crowd":   {requests: repeat(9, func(i int) Request { return issued("a", fmt.Sprint("r", i), -5) }), want: []string{"r0", "r1"}, next: 5 * time.Minute},
		"but not before agents could read them":     {requests: repeat(9, func(i int) Request { return issued("a", fmt.Sprint("r", i), 0) }), next: readable},
		"seven are no crowd":                        {requests: repeat(7, func(i int) Request { return pending(fmt.Sprint("a", i), fmt.Sprint("r", i), -60) })},
		"restarts under new names make room":        {requests: repeat(9, func(i int) Request { return pending(fmt.Sprint("a", i), fmt.Sprint("r", i), -60) }), want: []string{"r0", "r1"}},
		"but not those that just came":              {requests: repeat(9, func(i int) Request { return pending(fmt.Sprint("a", i), fmt.Sprint("r", i), -4) }), next: 6 * time.Minute},
		"rubbish of those who may ask, too":         {requests: repeat(9, func(i int) Request { return rubbish(fmt.Sprint("r", i), -60) }), want: []string{"r0", "r1"}},
		"other people's requests never go":          {requests: repeat(20, func(i int) Request { return foreign(fmt.Sprint("r", i), -600) })},
		"a flood by one token spares another token": {requests: append([]Request{with(pending("good", "r00", -600), "JTI=1")}, repeat(9, func(i int) Request { return with(pending(fmt.Sprint("a", i), fmt.Sprint("r", i), -60), "JTI=2") })...), want: []string{"r0", "r1", "r2"}},
	} {
		t.Run(name, func(t *testing.T) {
			slices.SortFunc(tc.requests, inOrder)
			got, next := leftovers(State{Requests: tc.requests, Now: now})
			require.Equal(t, tc.want, names(got))
			require.Equal(t, tc.next, next)
		})
	}
	t.Run("a pass is bounded", func(t *testing.T) {
		got, next := leftovers(State{Requests: repeat(500, func(i int) Request { return pending("a", fmt.Sprintf("r%03d", i), -60) }), Now: now})
		require.Len(t, got, maxLeftovers)
		require.Equal(t, soon, next)
	})
	t.Run("also where no ManagedCluster is", func(t *testing.T) {
		require.Equal(t, []string{"r1"}, names(Decide(State{Requests: []Request{denied("a", "x", "r1", -60, -10)}, Now: now}).Leftovers))
	})
}
