// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

const (
	// defaultDuration applies to a ManagedCluster whose duration is 0.
	defaultDuration = time.Minute
	// stretch is the maximum extension of a renewal's interval, as a part of the duration.
	stretch = 0.25
	// firstRetry and lastRetry bound the delay after a failed renewal, before the jitter. The
	// delay grows no further, because these attempts notice when the hub comes back; an
	// attempt costs the hub one handshake.
	firstRetry, lastRetry = time.Second, 16 * time.Second
)

// State is the input of a decision.
type State struct {
	Now time.Time
	// Cluster is the agent's own ManagedCluster; nil when it does not exist.
	Cluster *clusterv1.ManagedCluster
	// Renewed is when this session last renewed; zero before the first time.
	Renewed time.Time
	// Jitter is a number from 0 to 1, new for each renewal.
	Jitter float64
}

// Plan is what one pass does.
type Plan struct {
	// Renew is true when the lease must be written now.
	Renew bool
	// RequeueAfter is when to check again; zero waits for the ManagedCluster to change.
	RequeueAfter time.Duration
}

// Decide renews the lease when it is due and the hub accepts the cluster.
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

// retryDelay returns the delay before the next attempt after a number of consecutive failures: 1
// to 16 s, plus or minus up to a quarter, so that the agents of a hub that comes back do not
// all arrive at once. random is a number from 0 to 1.
func retryDelay(failures int, random float64) time.Duration {
	d := min(firstRetry<<min(failures-1, 4), lastRetry)
	return time.Duration(float64(d) * (1 - stretch + 2*stretch*random))
}
