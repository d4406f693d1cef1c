// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func limited(limit int) Token {
	return Token{JoinToken: identity.JoinToken{ID: "abc123", Credential: "JTI=1", Limit: limit}}
}

// counting is a loop without a cluster.
func counting() (*Controller, *clocktesting.FakePassiveClock) {
	clock := clocktesting.NewFakePassiveClock(now)
	return &Controller{
		config:   Config{Clock: clock},
		requests: newRequests(),
		tokens:   newTokens(),
		uses:     newUses(),
	}, clock
}

// byToken is the request of a cluster that was sent with the token.
func byToken(cluster string, kinds ...certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
	csr := sent(now, nil, "JTI=1")
	csr.Name, csr.UID = cluster, types.UID(cluster)
	csr.Labels = map[string]string{clusterv1.LabelClusterName: cluster}
	for _, kind := range kinds {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind})
	}
	return csr
}

// keep adds a request to the index as one of the correct form.
func (c *Controller) keep(csr *certificatesv1.CertificateSigningRequest) {
	c.requests.clusters[csr.Name] = map[types.UID]Request{csr.UID: {CSR: csr}}
}

func TestWhatCountsAsAUse(t *testing.T) {
	joined := func(name, id string) *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{clusterv1.AnnotationJoinedBy: id}},
		}
	}
	for name, tc := range map[string]struct {
		do     func(c *Controller)
		admits bool
	}{
		"nothing":              {func(*Controller) {}, true},
		"a request that waits": {func(c *Controller) { c.keep(byToken("c2")) }, true},
		"a request that was denied": {
			func(c *Controller) { c.keep(byToken("c2", certificatesv1.CertificateDenied)) },
			true,
		},
		"one that the signer failed": {func(c *Controller) {
			c.keep(byToken("c2", certificatesv1.CertificateApproved, certificatesv1.CertificateFailed))
		}, true},
		"a request that was approved": {
			func(c *Controller) { c.keep(byToken("c2", certificatesv1.CertificateApproved)) },
			false,
		},
		"one of the cluster itself": {
			func(c *Controller) { c.keep(byToken("c1", certificatesv1.CertificateApproved)) },
			true,
		},
		"a cluster that is noted":    {func(c *Controller) { c.uses.observe(nil, joined("c2", "abc123")) }, false},
		"one that joined by another": {func(c *Controller) { c.uses.observe(nil, joined("c2", "abc124")) }, true},
		"one that is gone": {func(c *Controller) {
			c.uses.observe(nil, joined("c2", "abc123"))
			c.uses.observe(joined("c2", "abc123"), nil)
		}, true},
		"one that joined again": {func(c *Controller) {
			c.uses.observe(nil, joined("c2", "abc123"))
			c.uses.observe(joined("c2", "abc123"), joined("c2", ""))
		}, true},
		"one that is about to be approved": {func(c *Controller) { c.reserveUses("c2", []Token{limited(1)}) }, false},
		"the cluster itself about to be":   {func(c *Controller) { c.reserveUses("c1", []Token{limited(1)}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := counting()
			tc.do(c)
			require.Equal(t, tc.admits, c.admitting("c1")(limited(1)))
			require.Equal(t, tc.admits, c.reserveUses("c1", []Token{limited(1)}))
			require.True(t, c.admitting("c1")(limited(0)), "without a limit it is valid for all")
		})
	}
}

func TestJoinsAtOnceDoNotOverrunALimit(t *testing.T) {
	c, clock := counting()
	var taken atomic.Int32
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			if c.reserveUses(fmt.Sprintf("c%d", i), []Token{limited(3)}) {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 3, taken.Load())
	clock.SetTime(now.Add(2 * spentFor))
	require.True(t, c.reserveUses("later", []Token{limited(3)}), "a use that was never approved becomes free")
}

func TestWhoWaitsIsLookedAtWhenAUseIsTaken(t *testing.T) {
	c, _ := counting()
	secret := tokenSecret("abc123", "JTI=1", "", now.Add(time.Hour))
	c.tokens.Observe(nil, secret, now)
	c.keep(byToken("c2"))
	open, done := byToken("c1"), byToken("c1", certificatesv1.CertificateApproved)
	require.Empty(t, c.rivals(open, done), "without a limit no cluster is affected")
	secret.Data[clusterv1.JoinTokenKeyUses] = []byte("1")
	c.tokens.Observe(nil, secret, now)
	require.Equal(t, []string{"c2"}, c.rivals(open, done))
	require.Empty(t, c.rivals(done, done))
	require.Empty(t, c.rivals(nil, open))
}

func TestAnApprovalSpendsTheTokensOfItsRequest(t *testing.T) {
	r := open("a", false)
	r.Limited = []Token{limited(1)}
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	d := Decide(State{Cluster: mc, Requests: []Request{r}, AutoApprove: []string{"bootstrap"}, Now: now})
	require.Len(t, d.Verdicts, 1)
	require.Equal(t, r.Limited, d.Verdicts[0].Spends)
}
