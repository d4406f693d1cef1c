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

// Name is the id of this loop.
const Name = "registration.selection"

// firstRest and lastRest bound the pause after no hub was usable; up to a
// quarter is added at random, so that agents do not ask in step.
const firstRest, lastRest = 5 * time.Second, 2 * time.Minute

// Registration is what the hub is chosen for; credential.Controller is one.
type Registration interface {
	// Settings hold the list of hubs and the timeout.
	Settings() agent.Settings
	// Report tells how far the registration at the chosen hub is.
	Report() credential.Report
}

// Config is what a Controller works with; all are required.
type Config struct {
	// Namespace holds the secrets.
	Namespace string
	// Secrets is the collection of credential.NewSecrets; its owner runs it,
	// after New.
	Secrets      *watch.Collection[credential.Secret]
	Registration Registration
	// Signs are those of the session of now. A change of Unaccepted comes with
	// a Wake, and so does one of what Registration reports.
	Signs func() Signs
	// OnChange is called after Chosen or Message changed; it must not block.
	OnChange func()
	// UserAgent names the process to the hubs.
	UserAgent string
	Clock     clock.PassiveClock
	// Random returns numbers of 0 to 1, for the jitter.
	Random func() float64
}

// Controller is the loop. Make it with New, run it once.
type Controller struct {
	config Config
	queue  *reconcile.Queue

	mu sync.Mutex
	// current is the secret in use, message what Message says.
	current, message string

	// The rest belongs to the one worker: the list that current was chosen from,
	// since when, and until when hubs that were left come last, by secret.
	list  string
	since time.Time
	left  map[string]time.Time
	round round
}

// round is one time of asking the hubs.
type round struct {
	// about is what the hubs are asked about: another one begins a new round.
	about string
	// refusals are the answers so far, by secret; an empty one means usable.
	refusals map[string]string
	// rest is until when nobody is asked again, after attempt rounds without a
	// usable hub; reasons is what the last one found.
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

// Wake brings a pass, when something that Options hold has changed.
func (c *Controller) Wake() { c.queue.Add(reconcile.Key{Name: clusterv1.SecretBootstrapHubKubeconfig}) }

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.config.Secrets.WaitSynced(ctx); err != nil {
		c.queue.Close()
		return err
	}
	c.Wake()
	return reconcile.Loop{Name: Name, Reconcile: c.Reconcile}.Run(ctx, c.queue)
}

// Chosen is the secret of the hub to join; empty while there is none, and
// problem then says why.
func (c *Controller) Chosen() (secret, problem string) {
	if secret, problem = c.shown(); secret == "" && problem == "" {
		problem = "looking for a usable hub"
	}
	return secret, problem
}

func (c *Controller) shown() (secret, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current, c.message
}

// Message is for people: why the hub in use should be left and is not, or why
// there is none; empty while all is well.
func (c *Controller) Message() string {
	_, message := c.shown()
	return message
}

// Reconcile chooses the hub, or keeps the one that was chosen.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
	settings, report := c.config.Registration.Settings(), c.config.Registration.Report()
	if len(settings.Hubs) == 0 || report.Identity.Cluster == "" {
		c.list = ""
		c.tell(ctx, "", "")
		return reconcile.Result{}, nil
	}
	s, configs := c.gather(ctx, settings, report)
	p := Decide(s)
	switch {
	case p.Ask != "":
		c.round.refusals[p.Ask] = c.ask(ctx, configs[p.Ask], report.Identity.Cluster)
		c.Wake()
		return reconcile.Result{}, ctx.Err()
	case p.Exhausted:
		p.RequeueAfter = c.exhausted(s.Now, p.Reasons)
	case p.Leaving == "" || p.Choose != s.Current:
		c.round.attempt = 0
	}
	if p.Choose != s.Current {
		c.since = s.Now
		if s.Current != "" {
			c.left[s.Current] = s.Now.Add(settings.HubTimeout)
			logr.FromContextOrDiscard(ctx).Info("The hub is left for another one", "left", s.Current, "reason", p.Leaving, "chosen", p.Choose)
		}
	}
	c.tell(ctx, p.Choose, message(p))
	if p.Choose != s.Current {
		// The next pass knows when to look again.
		c.Wake()
	}
	return reconcile.Result{RequeueAfter: p.RequeueAfter}, nil
}

// message tells what of the list does not work.
func message(p Plan) string {
	switch {
	case p.Reasons == "":
		return ""
	case p.Choose == "":
		return "no hub of the list is usable: " + p.Reasons
	}
	return "secret " + p.Choose + " is still in use: " + p.Leaving + ", and no other hub is usable: " + p.Reasons
}

// exhausted ends a round without a usable hub, and tells when the next begins.
func (c *Controller) exhausted(now time.Time, reasons string) time.Duration {
	rest := min(firstRest<<min(c.round.attempt, 16), lastRest)
	rest += time.Duration(c.config.Random() * float64(rest) / 4)
	c.round.attempt++
	c.round.rest, c.round.reasons = now.Add(rest), reasons
	return rest
}

// tell makes the choice visible if it changed.
func (c *Controller) tell(ctx context.Context, secret, message string) {
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
		secret, _ := c.secret(name)
		read := credential.ReadBootstrap(name, secret.Data)
		h := Hub{Secret: name, Problem: read.Problem, CoolUntil: c.left[name]}
		if configs[name] = read.Config; read.Config != nil {
			h.Server, h.ID = read.Config.Server, read.Config.ID()
		}
		s.Hubs = append(s.Hubs, h)
		about = append(about, name, read.Digest)
	}
	c.begin(ctx, &s, settings, report)
	if key := strings.Join(append(about, s.Current), "\n"); c.round.about != key {
		c.round = round{about: key, refusals: map[string]string{}}
	}
	if !c.round.rest.IsZero() && !s.Now.Before(c.round.rest) {
		c.round.rest, c.round.refusals = time.Time{}, map[string]string{}
	}
	s.Rest, s.Reasons = c.round.rest, c.round.reasons
	for i, h := range s.Hubs {
		s.Hubs[i].Refusal, s.Hubs[i].Asked = c.round.refusals[h.Secret], has(c.round.refusals, h.Secret)
	}
	return s, configs
}

// begin finds the hub in use: the one of the pass before, or, when the list is
// a new one, the one that there is access to or that is being joined.
func (c *Controller) begin(ctx context.Context, s *State, settings agent.Settings, report credential.Report) {
	kept := credential.ReadKept(c.secret(clusterv1.SecretHubKubeconfig))
	valid := ""
	if kept.Config != nil {
		s.Kept = kept.Config.Server
		if s.Now.Before(kept.Expires) {
			valid = s.Kept
		}
	}
	if list := strings.Join(settings.Hubs, "\n"); list != c.list {
		c.list, c.since = list, s.Now
		pending, _ := c.secret(clusterv1.SecretHubKubeconfigPending)
		s.Current = first(s.Hubs, valid, credential.PendingHub(pending))
		c.tell(ctx, s.Current, "")
	} else {
		s.Current, _ = c.shown()
	}
	switch s.Since = c.since; report.Phase {
	case credential.PhaseWaiting, credential.PhaseDenied, credential.PhaseThrottled:
		// The hub has answered, and its administrator may take their time.
		s.Since = s.Now
		c.since = s.Now
	default:
	}
}

func (c *Controller) secret(name string) (credential.Secret, bool) {
	return c.config.Secrets.Get(reconcile.Key{Namespace: c.config.Namespace, Name: name})
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}
