// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
)

// holding is which agent holds the name of a cluster.
type holding struct {
	// agent is the name of the agent that got the last certificate, as the hub recorded it;
	// empty when nothing is recorded.
	agent string
	// reports is true while the agent's last lease renewal is within the grace time.
	reports bool
	// renewed is when the agent last renewed its lease; zero when unknown.
	renewed time.Time
	// until is when its certificate expires, as the hub recorded it.
	until string
}

// readHolder reads which agent holds the name. It reads the lease itself: the conditions stay
// true for some minutes after an agent has gone.
func (o *Options) readHolder(ctx context.Context, mc *clusterv1.ManagedCluster) (holding, error) {
	if mc == nil {
		return holding{}, nil
	}
	h := holding{agent: mc.Annotations[clusterv1.AnnotationAgentName], reports: cluster.Alive(mc), until: mc.Annotations[clusterv1.AnnotationCertificateExpires]}
	if !h.reports {
		return h, nil
	}
	lease, err := o.Hub.Client.Resource(fleet.Leases).Namespace(mc.Name).Get(ctx, clusterv1.LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return h, nil
	}
	if err != nil {
		return h, fleet.Explain("reading the lease of "+mc.Name, o.Hub, err)
	}
	if at := cluster.Renewed(lease); at != nil {
		h.renewed = at.Time
	}
	return h, nil
}

// isRival reports whether a request is of another agent than the one that holds the name and
// reports. The agent that had the last certificate is not a rival of itself: it may have lost
// the certificate.
func (h holding) isRival(q request.Request) bool {
	if !h.reports {
		return false
	}
	if h.agent == "" {
		return q.Identity != "renewal"
	}
	return q.Requester != clusterv1.UserPrefix+q.Cluster+":"+h.agent
}

// describeState says how certain it is that the holder is running.
func (h holding) describeState(q request.Request, now time.Time) string {
	if h.renewed.IsZero() {
		return "and counts as available"
	}
	order := "before the other agent asked: it may be gone"
	if h.renewed.After(q.Created.Time) {
		order = "after the other agent asked: both are running"
	}
	return fmt.Sprintf("and renewed its lease %s ago, %s", duration.HumanDuration(now.Sub(h.renewed)), order)
}

// describeHolder names the holder.
func (h holding) describeHolder() string {
	if h.agent == "" {
		return "an agent whose name the hub has not recorded"
	}
	if h.until == "" {
		return "agent " + h.agent
	}
	return fmt.Sprintf("agent %s (certificate until %s)", h.agent, h.until)
}

// describeRivals names both agents that want the name.
func (h holding) describeRivals(q request.Request, now time.Time) string {
	agent := cmp.Or(strings.TrimPrefix(q.Requester, clusterv1.UserPrefix+q.Cluster+":"), q.Requester)
	return fmt.Sprintf("%s holds the name %s; agent %s asks for it by %s, sent by %s %s ago", h.describeHolder(), h.describeState(q, now),
		agent, q.Name, q.User, duration.HumanDuration(now.Sub(q.Created.Time)))
}

// contestedError is the refusal to give away a name that another agent holds.
func (o *Options) contestedError(h holding, q request.Request, now time.Time) error {
	return fleet.Refuse(fmt.Sprintf("another agent holds the name %q", q.Cluster), h.describeRivals(q, now), ReplaceAgent.On(o.Hub, "cluster", q.Cluster))
}
