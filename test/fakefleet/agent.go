// SPDX-License-Identifier: Apache-2.0

package fakefleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// callTimeout bounds one request of a running agent.
	callTimeout = 10 * time.Second
	// firstPause and lastPause bound the pause after a broken watch. It doubles each
	// time, plus a random part of up to its own length, as in client-go.
	firstPause, lastPause = 800 * time.Millisecond, 30 * time.Second
	// firstRetry and lastRetry bound the pause after a failed renewal. It doubles each
	// time, plus or minus a random quarter, as in ocm-agent.
	firstRetry, lastRetry = time.Second, 16 * time.Second
	// stretch is the largest random part, as a fraction of the lease duration, that is
	// added to the time between two renewals.
	stretch = 0.25
)

const (
	clustersPath = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
	requestsPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	mergePatch   = "application/merge-patch+json"
	jsonType     = "application/json"
)

// agent is one simulated agent.
type agent struct {
	fleet   *Fleet
	cluster string
	wire    *wire
	stop    context.CancelFunc

	mu     sync.Mutex
	random *rand.Rand
	lease  *coordinationv1.Lease
	period time.Duration
	timer  clock.Timer
	fails  int
	ended  bool
}

// end stops the agent.
func (a *agent) end() {
	a.stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.wire != a.fleet.pool {
		a.wire.http.CloseIdleConnections()
	}
}

// trouble reports a request that failed.
func (a *agent) trouble(err error) {
	if a.fleet.o.Trouble != nil && a.fleet.ctx.Err() == nil {
		a.fleet.o.Trouble(a.cluster, err)
	}
}

// pause returns how long to wait after n broken watches in a row.
func (a *agent) pause(n int) time.Duration {
	least := min(firstPause<<min(n, 10), lastPause)
	a.mu.Lock()
	defer a.mu.Unlock()
	return least + time.Duration(a.random.Float64()*float64(least))
}

// interval returns a time of at least least and at most least+most lease durations.
func (a *agent) interval(least, most float64) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Duration((least + most*a.random.Float64()) * float64(a.period))
}

// wait waits for d, or returns false when ctx ends first.
func (a *agent) wait(ctx context.Context, d time.Duration) bool {
	timer := a.fleet.o.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

func (a *agent) get(ctx context.Context) (*clusterv1.ManagedCluster, error) {
	mc := &clusterv1.ManagedCluster{}
	return mc, a.do(ctx, call{method: http.MethodGet, resource: "managedclusters", path: clustersPath + "/" + a.cluster}, mc)
}

func accepted(mc *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionHubAccepted)
}

func available(mc *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined) &&
		apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionAvailable)
}

// report writes the status, unless it already reports the cluster as available. A
// conflict is returned: the caller has, or gets, a newer copy.
func (a *agent) report(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	if !accepted(mc) || available(mc) {
		return nil
	}
	now := a.fleet.o.Clock.Now()
	status := a.fleet.o.Report(a.cluster, a.fleet.draw(a.cluster))
	status.Conditions = mc.Status.Conditions
	for _, c := range []metav1.Condition{
		{
			Type:    clusterv1.ConditionJoined,
			Status:  metav1.ConditionTrue,
			Reason:  clusterv1.ReasonManagedClusterJoined,
			Message: "Managed cluster joined",
		},
		{
			Type:    clusterv1.ConditionAvailable,
			Status:  metav1.ConditionTrue,
			Reason:  clusterv1.ReasonManagedClusterAvailable,
			Message: "Managed cluster is available",
		},
	} {
		c.ObservedGeneration = mc.Generation
		reconcile.SetCondition(&status.Conditions, c, now)
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": mc.UID, "resourceVersion": mc.ResourceVersion}, "status": status,
	})
	if err != nil {
		return err
	}
	return a.do(ctx, call{
		method: http.MethodPatch, resource: "managedclusters/status", path: clustersPath + "/" + a.cluster + "/status", contentType: mergePatch, body: body,
	}, nil)
}

// do makes a request, after the delay that the fleet simulates.
func (a *agent) do(ctx context.Context, c call, into any) error {
	if err := a.delay(ctx); err != nil {
		return err
	}
	return a.wire.do(ctx, c, into)
}

// delay waits as long as a request takes to reach the hub: a random part of
// Options.Latency.
func (a *agent) delay(ctx context.Context) error {
	most := a.fleet.o.Latency
	if most <= 0 {
		return nil
	}
	a.mu.Lock()
	drawn := time.Duration(a.random.Float64() * float64(most))
	a.mu.Unlock()
	if !a.wait(ctx, drawn) {
		return ctx.Err()
	}
	return nil
}

// watch watches the one ManagedCluster until ctx ends, and reports when that is due.
func (a *agent) watch(ctx context.Context, mc *clusterv1.ManagedCluster) {
	c := call{path: clustersPath, resource: "managedclusters", query: "fieldSelector=metadata.name%3D" + a.cluster}
	a.stream(ctx, c, mc.ResourceVersion, func(kind string, raw json.RawMessage) (string, error) {
		now := &clusterv1.ManagedCluster{}
		if err := json.Unmarshal(raw, now); err != nil {
			return "", err
		}
		if kind == eventBookmark || kind == eventDeleted {
			return now.ResourceVersion, nil
		}
		a.duration(now) //nolint:contextcheck // renewals go on after the call that began them
		if err := a.report(ctx, now); err != nil && !apierrors.IsConflict(err) {
			return "", err
		}
		return now.ResourceVersion, nil
	})
}

// Types of watch events that tell of no object to act on.
const (
	eventBookmark = "BOOKMARK"
	eventDeleted  = "DELETED"
)

// stream watches what c selects until ctx ends, and calls seen with each event, which
// returns the resourceVersion of the object. A broken watch resumes after the last event that seen
// accepted, so that one it returned an error for is seen again.
func (a *agent) stream(ctx context.Context, c call, version string, seen func(kind string, raw json.RawMessage) (string, error)) {
	selected := c.query
	for fails := 0; ctx.Err() == nil; {
		began := a.fleet.o.Clock.Now()
		c.query = "watch=1&allowWatchBookmarks=true&resourceVersion=" + version + "&" + selected
		err := a.delay(ctx)
		if err == nil {
			err = a.wire.follow(ctx, c, func(kind string, raw json.RawMessage) error {
				accepted, err := seen(kind, raw)
				if err == nil {
					version = accepted
				}
				return err
			})
		}
		if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
			// Start from the API server's cached state, which is sent first.
			version = "0"
		}
		if ctx.Err() == nil {
			a.trouble(fmt.Errorf("watching %s: %w", c.resource, err))
		}
		if fails++; a.fleet.o.Clock.Since(began) > lastPause {
			fails = 0
		}
		if !a.wait(ctx, a.pause(fails)) {
			return
		}
	}
}

// duration adopts the cluster's lease duration; a change takes effect immediately.
func (a *agent) duration(mc *clusterv1.ManagedCluster) {
	seconds := mc.Spec.LeaseDurationSeconds
	if seconds <= 0 {
		seconds = clusterv1.DefaultLeaseDurationSeconds
	}
	period := time.Duration(seconds) * time.Second
	a.mu.Lock()
	due := a.period != period && a.timer != nil && a.timer.Stop()
	a.period = period
	a.mu.Unlock()
	if due {
		a.next(0)
	}
}

// next schedules the next renewal of the lease.
func (a *agent) next(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	a.timer = a.fleet.o.Clock.AfterFunc(d, func() { go a.beat() })
}

// beat renews the lease and schedules the next renewal.
func (a *agent) beat() {
	ctx, cancel := context.WithTimeout(a.fleet.ctx, callTimeout)
	defer cancel()
	err := a.renew(ctx)
	a.mu.Lock()
	drawn := a.random.Float64()
	wait := a.period + time.Duration(stretch*drawn*float64(a.period))
	if err == nil {
		a.fails = 0
	} else {
		a.fails++
	}
	fails := a.fails
	a.mu.Unlock()
	if err != nil {
		a.trouble(fmt.Errorf("renewing the lease: %w", err))
		wait = time.Duration((0.75 + drawn/2) * float64(min(firstRetry<<min(fails-1, 10), lastRetry)))
	}
	a.next(wait)
}

// renew is one PUT; the lease is read before the first, and after a conflict.
func (a *agent) renew(ctx context.Context) error {
	c := call{
		method: http.MethodGet, resource: "leases", contentType: jsonType,
		path: "/apis/coordination.k8s.io/v1/namespaces/" + a.cluster + "/leases/" + clusterv1.LeaseName,
	}
	a.mu.Lock()
	lease := a.lease
	a.lease = nil
	a.mu.Unlock()
	if lease == nil {
		lease = &coordinationv1.Lease{}
		if err := a.do(ctx, c, lease); err != nil {
			return err
		}
		lease.ManagedFields = nil
	}
	now := metav1.NewMicroTime(a.fleet.o.Clock.Now())
	lease.Spec.RenewTime = &now
	body, err := json.Marshal(lease)
	if err != nil {
		return err
	}
	c.method, c.body = http.MethodPut, body
	live := &coordinationv1.Lease{}
	if err := a.do(ctx, c, live); err != nil {
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			a.keep(lease)
		}
		return err
	}
	live.ManagedFields = nil
	a.keep(live)
	return nil
}

func (a *agent) keep(lease *coordinationv1.Lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lease = lease
}

var errThere = errors.New("an agent of this cluster runs already, or the fleet was closed")
