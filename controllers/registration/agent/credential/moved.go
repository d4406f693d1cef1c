// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

// Trial is the result of trying the stored certificate at the address that the bootstrap
// kubeconfig names now. A hub that only has another address or certificate authority knows
// the certificate, and no new approval is needed.
type Trial struct {
	// Known is false until the hub there has answered.
	Known bool
	// Taken is true when it recognizes the agent by the certificate.
	Taken bool
}

// hasMoved reports whether the stored access is valid except for how the hub is reached. Another
// name of the cluster entry means another hub, whatever its address.
func (s State) hasMoved() bool {
	k, b := s.Kept, s.Bootstrap.Config
	return k.Problem == "" && b != nil && k.Identity == s.Identity && misfit(k.Leaf, s.Identity) == "" && s.Now.Before(k.Expires) &&
		k.Config.ClusterEntry == b.ClusterEntry && k.Config.Difference(b) != ""
}

// attempt identifies what was tried: this certificate at that hub.
func (s State) attempt() string {
	return kubeconfig.HubHash(s.Bootstrap.Config.ID() + string(s.Kept.Config.CertData))
}

// transfer returns the plan for a hub that moved; ok is false when a new certificate is
// needed.
func (s State) transfer() (p Plan, ok bool) {
	if !s.hasMoved() || (s.Trial.Known && !s.Trial.Taken) {
		return Plan{}, false
	}
	p.Step, p.Phase, p.Message = stepTry, PhaseConnecting, "the hub is at "+s.Bootstrap.Config.Server+" now: trying the kept certificate there"
	if s.Trial.Taken {
		p.Step, p.Message = request.StepRewrite, "the hub at "+s.Bootstrap.Config.Server+" knows the kept certificate"
	}
	return p, true
}

// tryMoved requests the agent's own ManagedCluster from the hub at the new address, with the
// stored certificate. A server that does not know the certificate, or gives it no rights, is
// another hub.
func (c *Controller) tryMoved(ctx context.Context, s State) error {
	there := *s.Bootstrap.Config
	there.Token, there.CertData, there.KeyData = "", s.Kept.Config.CertData, s.Kept.Config.KeyData
	link, err := agent.NewLink(&there, c.config.UserAgent)
	if err != nil {
		return err
	}
	defer link.Close()
	_, err = link.Client.Resource(clustersResource).Get(ctx, s.Identity.Cluster, metav1.GetOptions{})
	if err != nil && !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("trying the kept certificate at %s: %w", there.Server, err)
	}
	c.attempt, c.trial = s.attempt(), Trial{Known: true, Taken: err == nil}
	return nil
}
