// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
)

// holding is who has the name of a cluster now.
type holding struct {
	// agent is the name of the agent that got the last certificate, as the hub noted
	// it; empty where it noted none.
	agent string
	// reports is true while the hub has heard of the agent within the grace time.
	reports bool
	// renewed is when the agent renewed its lease last; zero when that is not known.
	renewed time.Time
	// until is the end of its certificate, as the hub noted it.
	until string
}

// holderOf reads who has the name. The lease is read now: what the conditions say
// is true for some minutes after an agent has gone.
func (o *Options) holderOf(ctx context.Context, mc *clusterv1.ManagedCluster) (holding, error) {
	if mc == nil {
		return holding{}, nil
	}
	h := holding{agent: mc.Annotations[clusterv1.AnnotationAgentName], reports: cluster.Alive(mc), until: mc.Annotations[clusterv1.AnnotationCertificateExpires]}
	if !h.reports {
		return h, nil
	}
	lease, err := o.Hub.Client.Resource(fleet.Leases).Namespace(mc.Name).Get(ctx, clusterv1.LeaseName, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return h, nil
		}
		return h, fleet.Explain("reading the lease of "+mc.Name, o.Hub, err)
	}
	if at := cluster.Renewed(lease); at != nil {
		h.renewed = at.Time
	}
	return h, nil
}

// rival tells whether a request is of another agent than the one that has the
// name and reports. The agent that had the last certificate is no rival of itself:
// it may have lost it.
func (h holding) rival(q request.Request) bool {
	if !h.reports {
		return false
	}
	if h.agent == "" {
		return q.Identity != "renewal"
	}
	return q.Requester != clusterv1.UserPrefix+q.Cluster+":"+h.agent
}

// state says in words how sure it is that the holder is there.
func (h holding) state(q request.Request, now time.Time) string {
	switch {
	case h.renewed.IsZero():
		return "and counts as available"
	case h.renewed.After(q.Created.Time):
		return fmt.Sprintf("and renewed its lease %s ago, after the other one asked: both are running", duration.HumanDuration(now.Sub(h.renewed)))
	}
	return fmt.Sprintf("and renewed its lease %s ago, before the other one asked: it may be gone", duration.HumanDuration(now.Sub(h.renewed)))
}

// who names the holder.
func (h holding) who() string {
	if h.agent == "" {
		return "an agent that the hub has no name of"
	}
	if h.until == "" {
		return "agent " + h.agent
	}
	return fmt.Sprintf("agent %s (certificate until %s)", h.agent, h.until)
}

// agentOf is the name of the agent that a request is for.
func agentOf(q request.Request) string {
	prefix := clusterv1.UserPrefix + q.Cluster + ":"
	if len(q.Requester) > len(prefix) && q.Requester[:len(prefix)] == prefix {
		return q.Requester[len(prefix):]
	}
	return q.Requester
}

// both names both agents that want the name.
func (h holding) both(q request.Request, now time.Time) string {
	return fmt.Sprintf("%s holds the name %s; agent %s asks for it by %s, sent by %s %s ago", h.who(), h.state(q, now),
		agentOf(q), q.Name, q.User, duration.HumanDuration(now.Sub(q.Created.Time)))
}

// contested is the refusal to give a name away that somebody holds.
func (o *Options) contested(h holding, q request.Request, now time.Time) error {
	return fleet.Refuse(fmt.Sprintf("another agent holds the name %q", q.Cluster), h.both(q, now), ReplaceAgent.On(o.Hub, "cluster", q.Cluster))
}
