// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Name is the id of this loop.
const Name = "registration.credential"

// Config is what a Controller works with. Everything but Labels, OnReport and Choose is
// required; Choose only where settings list several hubs.
type Config struct {
	// Spoke is the cluster that holds the secrets.
	Spoke dynamic.Interface
	// Namespace is where they are.
	Namespace string
	// Secrets is the collection of NewSecrets; its owner runs it, after New.
	Secrets *watch.Collection[Secret]
	// SpokeCA is the bundle that the own API server is trusted by.
	SpokeCA []byte
	// Labels are put on secrets that are created.
	Labels map[string]string
	// UserAgent names the process to the hub.
	UserAgent string
	Clock     clock.PassiveClock
	// Serve is run while there is access, until its context ends.
	Serve func(context.Context, agent.Session)
	// OnReport is called after Report changed; it must not block.
	OnReport func()
	// Choose tells which bootstrap secret is used where the settings list
	// several, and why none while it is empty. A change comes with a Wake.
	Choose func() (secret, problem string)
}

// Report is where the agent stands.
type Report struct {
	Phase Phase
	// Message is for people; it holds no credentials.
	Message string
	// Unusable is why there is a hub kubeconfig and it is not used, empty when
	// there is none or it is.
	Unusable string
	// Bootstrap is the name of the bootstrap secret that is used; empty while
	// none of several is.
	Bootstrap string
	// Identity is who the agent is or asks to be.
	Identity agent.Identity
	// Expires is the end of the certificate in use, zero without one.
	Expires time.Time
	// Renewal is not empty while the certificate is being renewed: the phase
	// of that request.
	Renewal Phase
}

// Controller is the loop. Make it with New, run it once.
type Controller struct {
	config  Config
	queue   *reconcile.Queue
	request *request.Watcher

	mu       sync.Mutex
	settings *agent.Settings
	report   Report

	// The rest belongs to the one worker.
	made      agent.Identity
	bootstrap *agent.Link
	digest    string
	session   *session
	joined    joined
	keptAt    time.Time
	tried     tried
	// asked is the request that was created.
	asked request.Asked
	// behind counts the passes in a row whose cache was behind.
	behind int
}

// joined is when the ManagedCluster was last seen, and by which kubeconfig.
type joined struct {
	at time.Time
	by string
}

// New prepares the loop. It waits for Configure before it registers anything.
func New(o Config) *Controller {
	c := &Controller{config: o, queue: reconcile.NewQueue(Name), report: Report{Phase: PhaseStopped}}
	o.Secrets.OnChange(func(reconcile.Key) {
		// New content is a new intent: failures of the old do not hold it back.
		c.queue.Forget(c.key())
		c.Wake()
	})
	return c
}

func (c *Controller) key() reconcile.Key {
	return reconcile.Key{Namespace: c.config.Namespace, Name: clusterv1.SecretHubKubeconfig}
}

// Wake brings a pass, when what Options.Choose tells has changed.
func (c *Controller) Wake() { c.queue.Add(c.key()) }

// Configure starts the registration with these settings, or changes them. Nil
// ends sessions and requests; Report then shows PhaseStopped.
func (c *Controller) Configure(s *agent.Settings) {
	c.mu.Lock()
	same := reflect.DeepEqual(c.settings, s)
	c.settings = s
	c.mu.Unlock()
	if !same {
		c.Wake()
	}
}

// Settings are those of Configure, zero when it was told to stop.
func (c *Controller) Settings() agent.Settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settings == nil {
		return agent.Settings{}
	}
	return *c.settings
}

func (c *Controller) configured() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings != nil
}

// Report tells where the agent stands.
func (c *Controller) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report
}

// Run works until ctx ends, and ends the session before it returns.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.config.Secrets.WaitSynced(ctx); err != nil {
		c.queue.Close()
		return err
	}
	c.request = request.NewWatcher(c.Wake, logr.FromContextOrDiscard(ctx))
	c.Wake()
	err := reconcile.Loop{Name: Name, Reconcile: c.Reconcile}.Run(ctx, c.queue)
	c.release()
	return err
}

// Reconcile is one pass: gather, decide, execute.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
	if !c.configured() {
		c.release()
		c.tell(ctx, Report{Phase: PhaseStopped})
		return reconcile.Result{}, nil
	}
	s, err := c.gather(ctx)
	if err != nil {
		c.tell(ctx, Report{Phase: PhaseConnecting, Message: err.Error(), Bootstrap: s.Bootstrap.Secret, Identity: s.Identity})
		return reconcile.Result{}, err
	}
	p := Decide(s)
	r := Report{Phase: p.Phase, Message: p.Message, Bootstrap: s.Bootstrap.Secret, Identity: s.Identity, Renewal: p.Renewal}
	switch {
	case p.Own:
		r.Expires = s.Kept.Expires
	case s.Kept.Secret != nil:
		r.Unusable = s.unusable()
	}
	err = c.execute(ctx, s, p)
	switch {
	case err == nil:
		c.behind = 0
	case raced(p.Step, err):
		c.behind++
		return reconcile.Result{RequeueAfter: request.Behind(c.behind)}, nil
	case errors.Is(err, errThrottled):
		r.failed(PhaseThrottled, err)
		c.tell(ctx, r)
		return reconcile.Result{RequeueAfter: throttleDelay}, nil
	default:
		r.failed(PhaseConnecting, err)
		c.tell(ctx, r)
		return reconcile.Result{}, err
	}
	c.tell(ctx, r)
	if p.Step == stepJoin || p.Step == stepTry {
		// Nothing on this cluster changed that would bring the next step.
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	return reconcile.Result{RequeueAfter: p.RequeueAfter}, nil
}

// failed puts an error into the report; it does not take away valid access.
func (r *Report) failed(phase Phase, err error) {
	r.Message = err.Error()
	if r.Phase == PhaseServing {
		r.Renewal = phase
		return
	}
	r.Phase = phase
}

// tell makes the report visible if it changed.
func (c *Controller) tell(ctx context.Context, r Report) {
	c.mu.Lock()
	before := c.report
	c.report = r
	c.mu.Unlock()
	if before == r {
		return
	}
	if before.Phase != r.Phase || before.Renewal != r.Renewal {
		logr.FromContextOrDiscard(ctx).Info("Registration moved on", "phase", r.Phase, "cluster", r.Identity.Cluster, "message", r.Message)
	}
	if c.config.OnReport != nil {
		c.config.OnReport()
	}
}
