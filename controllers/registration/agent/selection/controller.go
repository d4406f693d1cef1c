// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Name identifies this loop.
const Name = "registration.selection"

// firstRest and lastRest bound the pause after finding no usable hub; up to a quarter is
// added at random, so that agents do not ask in step.
const firstRest, lastRest = 5 * time.Second, 2 * time.Minute

// Config configures a Controller; all fields are required.
type Config struct {
	// Namespace is the namespace of the secrets.
	Namespace string
	// Secrets is a collection made by credential.NewSecrets; its owner runs it, after New.
	Secrets *watch.Collection[credential.Secret]
	// Registration is what the hub is chosen for.
	Registration *credential.Controller
	// Signs returns those of the current session. After a change of Unaccepted, or of what
	// Registration reports, Wake must be called.
	Signs func() Signs
	// OnChange is called after Chosen or Message has changed; it must not block.
	OnChange func()
	// UserAgent identifies the process to the hubs.
	UserAgent string
	Clock     clock.PassiveClock
	// Random returns numbers from 0 to 1, for the jitter.
	Random func() float64
}

// Controller is the loop. Make it with New and run it once.
type Controller struct {
	config Config
	queue  *reconcile.Queue

	mu sync.Mutex
	// current is the secret in use, message the result of Message.
	current, message string

	// The fields below are used by the single worker only. list is the list current was
	// chosen from, since when that happened, and left until when hubs that were left come
	// last, by secret.
	list  string
	since time.Time
	left  map[string]time.Time
	round round
}

// round is one round of asking the hubs.
type round struct {
	// about is the subject of the round: another one starts a new round.
	about string
	// refusals are the answers so far, by secret; an empty one means usable.
	refusals map[string]string
	// rest is until when no hub is asked again, after attempt rounds without a usable hub;
	// reasons is the result of the last one.
	rest    time.Time
	reasons string
	attempt int
}

// New prepares the loop.
func New(o Config) *Controller {
	c := &Controller{config: o, queue: reconcile.NewQueue(Name), left: map[string]time.Time{}}
	o.Secrets.OnChange(func(reconcile.Key) { c.Wake() })
	return c
}

// Wake triggers a pass; it is called when something in Config has changed.
func (c *Controller) Wake() { c.queue.Add(reconcile.Key{Name: clusterv1.SecretBootstrapHubKubeconfig}) }

// Run runs the loop until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.config.Secrets.WaitSynced(ctx); err != nil {
		c.queue.Close()
		return err
	}
	c.Wake()
	return reconcile.Loop{Name: Name, Reconcile: c.Reconcile}.Run(ctx, c.queue)
}

// Chosen returns the secret of the hub to join; when it is empty, problem says why.
func (c *Controller) Chosen() (secret, problem string) {
	if secret, problem = c.snapshot(); secret == "" && problem == "" {
		problem = "looking for a usable hub"
	}
	return secret, problem
}

func (c *Controller) snapshot() (secret, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current, c.message
}

// Message is for users: why the hub in use should be left but is not, or why there is none;
// empty while all is well.
func (c *Controller) Message() string {
	_, message := c.snapshot()
	return message
}

// Reconcile chooses the hub, or keeps the one chosen before.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
	settings, report := c.config.Registration.Settings(), c.config.Registration.Report()
	if len(settings.Hubs) == 0 || report.Identity.Cluster == "" {
		c.list = ""
		c.publish(ctx, "", "")
		return reconcile.Result{}, nil
	}
	s, configs := c.gather(ctx, settings, report)
	p := Decide(s)
	switch {
	case p.Ask != "":
		c.round.refusals[p.Ask] = c.askHub(ctx, configs[p.Ask], report.Identity.Cluster)
		c.Wake()
		return reconcile.Result{}, ctx.Err()
	case p.Exhausted:
		p.RequeueAfter = c.endRound(s.Now, p.Reasons)
	case p.Leaving == "" || p.Choose != s.Current:
		c.round.attempt = 0
	}
	if p.Choose != s.Current {
		c.since = s.Now
		if s.Current != "" {
			c.left[s.Current] = s.Now.Add(settings.HubTimeout)
			logr.FromContextOrDiscard(ctx).Info("Leaving the hub for another one", "left", s.Current, "reason", p.Leaving, "chosen", p.Choose)
		}
	}
	c.publish(ctx, p.Choose, message(p))
	if p.Choose != s.Current {
		// The next pass determines when to check again.
		c.Wake()
	}
	return reconcile.Result{RequeueAfter: p.RequeueAfter}, nil
}

// message says what is wrong with the hubs of the list; empty when nothing is.
func message(p Plan) string {
	switch {
	case p.Reasons == "":
		return ""
	case p.Choose == "":
		return "no hub of the list is usable: " + p.Reasons
	}
	return "secret " + p.Choose + " is still in use: " + p.Leaving + ", and no other hub is usable: " + p.Reasons
}

// endRound ends a round without a usable hub, and returns when the next one starts.
func (c *Controller) endRound(now time.Time, reasons string) time.Duration {
	rest := min(firstRest<<min(c.round.attempt, 16), lastRest)
	rest += time.Duration(c.config.Random() * float64(rest) / 4)
	c.round.attempt++
	c.round.rest, c.round.reasons = now.Add(rest), reasons
	return rest
}

// publish publishes the choice if it changed.
func (c *Controller) publish(ctx context.Context, secret, message string) {
	c.mu.Lock()
	changed, another := c.current != secret || c.message != message, c.current != secret
	c.current, c.message = secret, message
	c.mu.Unlock()
	if another && secret != "" {
		logr.FromContextOrDiscard(ctx).Info("A hub was chosen", "secret", secret)
	}
	if changed {
		c.config.OnChange()
	}
}

// gather reads the secrets and what is known of their hubs.
func (c *Controller) gather(ctx context.Context, settings agent.Settings, report credential.Report) (State, map[string]*kubeconfig.Config) {
	s := State{Now: c.config.Clock.Now(), Timeout: settings.HubTimeout, Signs: c.config.Signs(), Joining: report.Phase != credential.PhaseServing}
	configs := map[string]*kubeconfig.Config{}
	about := []string{report.Identity.Cluster}
	for _, name := range settings.Hubs {
		secret, _ := c.getSecret(name)
		read := credential.ReadBootstrap(name, secret.Data)
		h := Hub{Secret: name, Problem: read.Problem, CoolUntil: c.left[name]}
		if configs[name] = read.Config; read.Config != nil {
			h.Server, h.ID = read.Config.Server, read.Config.ID()
		}
		s.Hubs = append(s.Hubs, h)
		about = append(about, name, read.Digest)
	}
	c.findCurrent(ctx, &s, settings, report)
	if key := strings.Join(append(about, s.Current), "\n"); c.round.about != key {
		c.round = round{about: key, refusals: map[string]string{}}
	}
	if !c.round.rest.IsZero() && !s.Now.Before(c.round.rest) {
		c.round.rest, c.round.refusals = time.Time{}, map[string]string{}
	}
	s.Rest, s.Reasons = c.round.rest, c.round.reasons
	for i, h := range s.Hubs {
		s.Hubs[i].Refusal, s.Hubs[i].Asked = c.round.refusals[h.Secret]
	}
	return s, configs
}

// findCurrent determines the hub in use: that of the previous pass or, for a new list, the one
// there is access to or that is being joined.
func (c *Controller) findCurrent(ctx context.Context, s *State, settings agent.Settings, report credential.Report) {
	kept := credential.ReadKept(c.getSecret(clusterv1.SecretHubKubeconfig))
	valid := ""
	if kept.Config != nil {
		s.Kept = kept.Config.Server
		if s.Now.Before(kept.Expires) {
			valid = s.Kept
		}
	}
	if list := strings.Join(settings.Hubs, "\n"); list != c.list {
		c.list, c.since = list, s.Now
		pending, _ := c.getSecret(clusterv1.SecretHubKubeconfigPending)
		s.Current = initialHub(s.Hubs, valid, credential.PendingHub(pending))
		c.publish(ctx, s.Current, "")
	} else {
		s.Current, _ = c.snapshot()
	}
	switch s.Since = c.since; report.Phase {
	case credential.PhaseWaiting, credential.PhaseDenied, credential.PhaseThrottled:
		// The hub has answered, and its administrator may take their time.
		s.Since = s.Now
		c.since = s.Now
	default:
	}
}

func (c *Controller) getSecret(name string) (credential.Secret, bool) {
	return c.config.Secrets.Get(reconcile.Key{Namespace: c.config.Namespace, Name: name})
}
