// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

const (
	// defaultDuration is meant by a ManagedCluster that says 0.
	defaultDuration = time.Minute
	// stretch is how much longer than the duration a renewal may wait.
	stretch = 0.25
	// firstRetry and lastRetry bound the wait after a renewal that failed, before
	// the jitter. It grows no further, because the hub is noticed by it when it
	// comes back; an attempt costs it one handshake.
	firstRetry, lastRetry = time.Second, 16 * time.Second
)

// State is what a decision is made on.
type State struct {
	Now time.Time
	// Cluster is the agent's own ManagedCluster; nil when it is not there.
	Cluster *clusterv1.ManagedCluster
	// Renewed is when this session renewed last, zero before the first time.
	Renewed time.Time
	// Jitter is a number of 0 to 1 that is new for each renewal.
	Jitter float64
}

// Plan is what a pass does.
type Plan struct {
	// Renew tells to write the lease now.
	Renew bool
	// RequeueAfter is when to look again; zero waits for the ManagedCluster to
	// change.
	RequeueAfter time.Duration
}

// Decide renews when the time has come and the hub accepts the cluster.
func Decide(s State) Plan {
	if s.Cluster == nil || !apimeta.IsStatusConditionTrue(s.Cluster.Status.Conditions, clusterv1.ConditionHubAccepted) {
		return Plan{}
	}
	duration := time.Duration(s.Cluster.Spec.LeaseDurationSeconds) * time.Second
	if duration <= 0 {
		duration = defaultDuration
	}
	period := duration + time.Duration(stretch*s.Jitter*float64(duration))
	if wait := s.Renewed.Add(period).Sub(s.Now); !s.Renewed.IsZero() && wait > 0 {
		return Plan{RequeueAfter: wait}
	}
	return Plan{Renew: true, RequeueAfter: period}
}

// retry is how long the next attempt waits after so many failures in a row:
// 1 to 16 s, by up to a quarter less or more, so that the agents of a hub that
// comes back do not all arrive at once. Random is a number of 0 to 1.
func retry(failures int, random float64) time.Duration {
	d := lastRetry
	if failures < 5 {
		d = firstRetry << (failures - 1)
	}
	return time.Duration(float64(d) * (1 - stretch + 2*stretch*random))
}
