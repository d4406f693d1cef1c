// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

const (
	// refusedFor is how long a hub must refuse the stored certificate, while it knows the bootstrap
	// credential, before the certificate is given up. A shorter time costs certificate requests when
	// an API server is misconfigured for a moment, a longer one lets the cluster become Unknown.
	refusedFor = 30 * time.Second
	// inquireEvery is the time between two inquiries until then, and inquireAgain after that: a hub
	// may learn to know the certificate again.
	inquireEvery, inquireAgain = 10 * time.Second, 5 * time.Minute
)

// Refusal is what a hub said when it was asked whether it knows the stored certificate. That changes
// when the hub has another authority for the certificates of clients.
type Refusal struct {
	// Certificate identifies the certificate.
	Certificate string
	// Since is when the hub first refused it and knew the bootstrap credential; zero when it did
	// otherwise. Asked is when it was asked last.
	Since, Asked time.Time
}

// isRefused reports whether the hub has refused the stored certificate for good.
func (s State) isRefused() bool {
	return s.Bootstrap.Config != nil && !s.Refusal.Since.IsZero() && s.Refusal.Asked.Sub(s.Refusal.Since) >= refusedFor
}

// withInquiry adds the next inquiry to a plan that has no other step: at intervals, while there is a
// reason for it.
func (s State) withInquiry(p Plan) Plan {
	every := inquireEvery
	switch {
	case s.isRefused():
		every = inquireAgain
	case s.Bootstrap.Config == nil || !p.Own || !(s.Unknown || !s.Refusal.Since.IsZero()):
		return p
	}
	wait := s.Refusal.Asked.Add(every).Sub(s.Now)
	switch {
	case p.Step != request.StepNone:
	case wait <= 0 || wait > every:
		p.Step = stepInquire
	case p.RequeueAfter == 0 || wait < p.RequeueAfter:
		p.RequeueAfter = wait
	}
	return p
}

// certificateID identifies the stored certificate; empty when there is none.
func (s State) certificateID() string {
	if s.Kept.Config == nil {
		return ""
	}
	return kubeconfig.HubHash(string(s.Kept.Config.CertData))
}

// inquire asks the hub whether it knows the stored certificate and, if not, whether it knows the
// bootstrap credential. A hub that knows neither, or does not answer, is not well: that says nothing
// about the certificate.
func (c *Controller) inquire(ctx context.Context, s State) {
	c.refusal = Refusal{Certificate: s.certificateID(), Asked: c.config.Clock.Now()}
	known, err := c.knows(ctx, s.Kept.Config, s.Identity.Cluster)
	if err == nil && known {
		return
	}
	well := false
	if err == nil {
		well, err = c.knows(ctx, s.Bootstrap.Config, s.Identity.Cluster)
	}
	switch {
	case err == nil && well && s.Refusal.Since.IsZero():
		c.refusal.Since = c.refusal.Asked
	case err == nil && well, s.isRefused():
		c.refusal.Since = s.Refusal.Since
	}
}

// knows reports whether the hub of a kubeconfig knows its credential, whatever it may do there.
func (c *Controller) knows(ctx context.Context, config *kubeconfig.Config, cluster string) (bool, error) {
	link, err := agent.NewLink(config, c.config.UserAgent)
	if err != nil {
		return false, err
	}
	defer link.Close()
	_, err = link.Client.Resource(clustersResource).Get(ctx, cluster, metav1.GetOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return false, nil
	case err == nil, apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return true, nil
	}
	return false, fmt.Errorf("asking the hub about a credential: %w", err)
}
