// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// nameLength is the length of a generated agent name.
const nameLength = 5

// gather reads the secrets and the pending request from their caches, and updates the
// connections to match the secrets.
func (c *Controller) gather(ctx context.Context) (State, error) {
	s := State{
		Now: c.config.Clock.Now(), KeptAt: c.keptAt,
		Bootstrap: c.readBootstrap(),
		Kept:      ReadKept(c.getSecret(clusterv1.SecretHubKubeconfig)),
		Pending:   readPending(c.getSecret(clusterv1.SecretHubKubeconfigPending)),
	}
	s.Identity, s.Asked = c.identity(s), c.asked.When(s.Pending.Request)
	if s.hasMoved() && c.attempt == s.attempt() {
		s.Trial = c.trial
	}
	s.Unknown = c.config.Unknown != nil && c.config.Unknown()
	if c.refusal.Certificate == s.certificateID() {
		s.Refusal = c.refusal
	}
	own := s.unusable() == ""
	if err := c.connect(ctx, s, own); err != nil {
		return s, err
	}
	s.JoinDue = !own && (c.joined.by != s.Bootstrap.Digest || !s.Now.Before(c.joined.at.Add(joinEvery+spread(s.Identity.Cluster))))
	link := c.link(own)
	if link == nil || (own && s.Now.Before(s.renewAt())) || s.JoinDue || !s.isCurrent() {
		c.request.Close()
		return s, nil
	}
	s.Request = c.request.Look(ctx, link.Client, s.Pending.Request)
	return s, nil
}

// readBootstrap reads the bootstrap secret named in the settings, or the one chosen out of
// several.
func (c *Controller) readBootstrap() Bootstrap {
	settings := c.Settings()
	name := cmp.Or(settings.BootstrapSecret, clusterv1.SecretBootstrapHubKubeconfig)
	if len(settings.Hubs) > 0 && c.config.Choose != nil {
		chosen, problem := c.config.Choose()
		if chosen == "" {
			return Bootstrap{Problem: problem}
		}
		name = chosen
	}
	secret, _ := c.getSecret(name)
	return ReadBootstrap(name, secret.Data)
}

func (c *Controller) getSecret(name string) (Secret, bool) {
	return c.config.Secrets.Get(reconcile.Key{Namespace: c.config.Namespace, Name: name})
}

// identity returns the agent's identity: as configured, else from its certificate, else as
// before, else generated once. A process keeps its identity when its secret is deleted or
// corrupted. The configuration comes from the arguments of the process, or is what the
// operator read from the certificate before it read an editable spec.
func (c *Controller) identity(s State) agent.Identity {
	settings, kept, pending := c.Settings(), s.Kept.Identity.Known(), s.Pending.Identity.Known()
	if session := c.sessions.Current(); session != nil {
		c.made = session.Identity
	}
	if c.made.Cluster == "" {
		c.made = agent.Identity{Cluster: string(uuid.NewUUID()), Agent: request.RandomName(nameLength)}
	}
	return agent.Identity{
		Cluster: cmp.Or(settings.ClusterName, s.Kept.Certified().Cluster, kept.Cluster, pending.Cluster, c.made.Cluster),
		Agent:   cmp.Or(settings.AgentName, kept.Agent, pending.Agent, c.made.Agent),
	}
}

// spread is how much of a further joinEvery a cluster waits in addition.
func spread(cluster string) time.Duration {
	return joinEvery * time.Duration(kubeconfig.HubHash(cluster)[0]) / 256
}

// link returns the connection with the own or the bootstrap identity; nil if there is none.
func (c *Controller) link(own bool) *agent.Link {
	if !own {
		return c.bootstrap
	}
	return c.sessions.Current().Link
}

// connect makes the connections the secrets require and closes the others.
func (c *Controller) connect(ctx context.Context, s State, own bool) error {
	if !own {
		c.sessions.End()
	} else if err := c.sessions.Keep(ctx, agent.Access{
		Config: s.Kept.Config, Identity: s.Identity, HubID: s.Kept.HubID(), Settings: c.Settings(),
	}); err != nil {
		return err
	}
	if own || s.Bootstrap.Config == nil {
		c.closeBootstrap()
		return nil
	}
	if c.bootstrap != nil && c.digest == s.Bootstrap.Digest {
		return nil
	}
	c.closeBootstrap()
	link, err := agent.NewLink(s.Bootstrap.Config, c.config.UserAgent)
	if err != nil {
		return err
	}
	c.bootstrap, c.digest = link, s.Bootstrap.Digest
	return nil
}

func (c *Controller) closeBootstrap() {
	if c.bootstrap == nil {
		return
	}
	c.request.Close()
	c.bootstrap.Close()
	c.bootstrap, c.digest = nil, ""
}

// release closes everything that communicates with the hub.
func (c *Controller) release() {
	c.request.Close()
	c.sessions.End()
	c.closeBootstrap()
}
