// SPDX-License-Identifier: Apache-2.0

//go:build perf

package serviceaccount_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

const (
	// quiet is how long nothing is sent until agent and hub are at rest.
	quiet = 2 * time.Second
	// perfPatience bounds every wait.
	perfPatience = 5 * time.Minute
)

// crowd is a cluster with many accounts.
type crowd struct {
	*place
	process *faults.Process
	count   int
}

// TestAThousandAccountsOfAClusterStayWithinTheirBudgets counts what the agent and the hub send for
// many accounts of one cluster.
func TestAThousandAccountsOfAClusterStayWithinTheirBudgets(t *testing.T) {
	b := budget.Open(t, "../../perf/serviceaccount.yaml")
	c := &crowd{place: start(t).join(t, "many"), process: &faults.Process{}, count: budget.Sized(1000, 100)}
	c.stop()
	c.startAs(t, c.process, c.hub.Config.Host)
	c.sent(t, "start")
	each := func(n int) float64 { return float64(n) / float64(c.count) }

	var group errgroup.Group
	const atOnce = 16
	group.SetLimit(atOnce)
	for i := range c.count {
		group.Go(func() error {
			c.ask(t, fmt.Sprintf("account-%d", i), `{"rotation":{"validity":"1h"}}`)
			return nil
		})
	}
	require.NoError(t, group.Wait())
	first := c.await(t, time.Time{})
	asked, written, loops := c.sent(t, "created")
	b.Count("requestsNew", each(asked))
	b.Count("writesNew", each(written))
	b.Count("writesOfTheHub", each(loops))

	<-time.After(budget.Sized(15*time.Second, 5*time.Second))
	asked, _, loops = c.sent(t, "at rest")
	b.Count("requestsAtRest", float64(asked+loops))

	// Nobody waits for tokens to become due: they are replaced by what is none.
	for i := range c.count {
		c.patch(t, c.onHub, secrets, reconcile.Key{Namespace: c.cluster, Name: fmt.Sprintf("account-%d", i)}, `{"data":{"token":"eA=="}}`)
	}
	c.await(t, first)
	asked, written, loops = c.sent(t, "renewed")
	b.Count("requestsToRenew", each(asked))
	b.Count("writesToRenew", each(written))
	b.Count("writesOfTheHubToRenew", float64(loops))

	c.stop()
	c.startAs(t, c.process, c.hub.Config.Host)
	asked, written, _ = c.sent(t, "started")
	b.Count("requestsToStart", each(asked))
	b.Count("reviewsToStart", each(written))
	b.Complete()
}

// await waits until all accounts have tokens that were issued after a time, and returns when the
// last of them was.
func (c *crowd) await(t *testing.T, after time.Time) (last time.Time) {
	t.Helper()
	began := time.Now()
	require.True(t, harness.Until(perfPatience, func() bool {
		list, err := typed.List[authenticationv1beta1.ManagedServiceAccount](t.Context(), c.onHub, asked, c.cluster, metav1.ListOptions{})
		require.NoError(t, err)
		done := 0
		for i := range list {
			ref := list[i].Status.TokenSecretRef
			if ref != nil && ref.LastRefreshTimestamp.After(after) && says("TokenReported", metav1.ConditionTrue, "TokenReported")(&list[i]) {
				done++
				if ref.LastRefreshTimestamp.After(last) {
					last = ref.LastRefreshTimestamp.Time
				}
			}
		}
		<-time.After(time.Second) // a list of them all is no cheap look
		return done == c.count
	}))
	t.Logf("%d accounts after %s", c.count, time.Since(began).Round(time.Second))
	return last
}

// sent returns what was sent since it was last called, when nothing is sent any more: the requests
// of the agent, those of them that write, and what the loops of the hub have written.
func (c *crowd) sent(t *testing.T, what string) (asked, written, loops int) {
	t.Helper()
	var own, hubs []string
	require.True(t, harness.Until(perfPatience, func() bool {
		<-time.After(quiet)
		more, others := c.process.Take(), c.loops.Take()
		own, hubs = append(own, more...), append(hubs, others...)
		return len(more)+len(others) == 0
	}))
	kinds := map[string]int{}
	for _, request := range append(slices.Clone(own), hubs...) {
		kinds[kindOf(request)]++
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%s: %6d %s", what, kinds[kind], kind)
	}
	return len(own), writes(own), writes(hubs)
}

// writes counts the requests that write.
func writes(requests []string) (n int) {
	for _, r := range requests {
		if !strings.Contains(r, " GET ") {
			n++
		}
	}
	return n
}

// kindOf returns a request without the names of accounts.
func kindOf(request string) string {
	words := strings.Split(request, "/")
	for i, word := range words {
		if strings.HasPrefix(word, "account-") {
			words[i] = "NAME"
		}
	}
	return strings.Join(words, "/")
}
