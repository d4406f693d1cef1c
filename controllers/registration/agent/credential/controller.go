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

// Name identifies this loop.
const Name = "registration.credential"

// Config configures a Controller. All fields but Labels, OnReport and Choose are required;
// Choose only where the settings list several hubs.
type Config struct {
	// Management is the client for the cluster that holds the secrets: the one that the agent
	// runs on.
	Management dynamic.Interface
	// Namespace is the namespace of the secrets.
	Namespace string
	// Secrets is a collection made by NewSecrets; its owner runs it, after New.
	Secrets *watch.Collection[Secret]
	// SpokeCA is the CA bundle of the managed cluster's API server.
	SpokeCA []byte
	// Labels are put on the secrets it creates.
	Labels map[string]string
	// UserAgent identifies the process to the hub.
	UserAgent string
	Clock     clock.PassiveClock
	// Serve runs while there is access, until its context ends.
	Serve func(context.Context, agent.Session)
	// OnReport is called after Report has changed; it must not block.
	OnReport func()
	// Choose returns the bootstrap secret to use where the settings list several, and why
	// there is none when it is empty. After a change, Wake must be called.
	Choose func() (secret, problem string)
	// Unknown reports whether the hub refuses the session's requests because it does not know the
	// certificate; nil means that it never does. After a change, Wake must be called.
	Unknown func() bool
}

// Report is the state of the agent.
type Report struct {
	Phase Phase
	// Message is for users; it holds no credentials.
	Message string
	// Unusable is why the existing hub kubeconfig is not used; empty when there is none or it
	// is used.
	Unusable string
	// Bootstrap is the name of the bootstrap secret in use; empty while none of several is.
	Bootstrap string
	// Identity is the agent's current or requested identity.
	Identity agent.Identity
	// Expires is the expiry of the certificate in use; zero without one.
	Expires time.Time
	// Renewal is the phase of the request while the certificate is being renewed; empty
	// otherwise.
	Renewal Phase
}

// Controller is the loop. Make it with New and run it once.
type Controller struct {
	config  Config
	queue   *reconcile.Queue
	request *request.Watcher

	mu       sync.Mutex
	settings *agent.Settings
	report   Report

	// The fields below are used by the single worker only.
	made      agent.Identity
	bootstrap *agent.Link
	digest    string
	sessions  agent.Sessions
	joined    joined
	keptAt    time.Time
	// attempt is what was tried last at a hub that may have moved, trial its result.
	attempt string
	trial   Trial
	// refusal is what the hub said last about the stored certificate.
	refusal Refusal
	// asked is the request created last.
	asked request.Asked
	// behind counts consecutive passes with a stale cache.
	behind int
}

// joined is when the ManagedCluster was last seen, and with which kubeconfig.
type joined struct {
	at time.Time
	by string
}

// New prepares the loop. It registers nothing before Configure is called.
func New(o Config) *Controller {
	c := &Controller{config: o, queue: reconcile.NewQueue(Name), report: Report{Phase: PhaseStopped}}
	c.sessions = agent.Sessions{UserAgent: o.UserAgent, Serve: o.Serve, Ending: func() { c.request.Close() }}
	o.Secrets.OnChange(func(reconcile.Key) {
		// New content is a new intent: earlier failures do not delay it.
		c.queue.Forget(c.key())
		c.Wake()
	})
	return c
}

func (c *Controller) key() reconcile.Key {
	return reconcile.Key{Namespace: c.config.Namespace, Name: clusterv1.SecretHubKubeconfig}
}

// Wake triggers a pass; it is called when the result of Config.Choose has changed.
func (c *Controller) Wake() { c.queue.Add(c.key()) }

// Configure starts the registration with these settings, or changes them. Nil ends sessions
// and requests; Report then shows PhaseStopped.
func (c *Controller) Configure(s *agent.Settings) {
	c.mu.Lock()
	same := reflect.DeepEqual(c.settings, s)
	c.settings = s
	c.mu.Unlock()
	if !same {
		c.Wake()
	}
}

// Settings returns the settings given to Configure; zero when stopped.
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

// Report returns the state of the agent.
func (c *Controller) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report
}

// Run runs the loop until ctx ends, and ends the session before it returns.
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
		c.publish(ctx, Report{Phase: PhaseStopped})
		return reconcile.Result{}, nil
	}
	s, err := c.gather(ctx)
	if err != nil {
		c.publish(ctx, Report{Phase: PhaseConnecting, Message: err.Error(), Bootstrap: s.Bootstrap.Secret, Identity: s.Identity})
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
	result := reconcile.Result{RequeueAfter: p.RequeueAfter}
	err = c.execute(ctx, s, p)
	switch {
	case err == nil:
		c.behind = 0
		if p.Step == stepJoin || p.Step == stepTry || p.Step == stepInquire {
			// Nothing on this cluster has changed that would trigger the next step.
			result.RequeueAfter = time.Millisecond
		}
	case isStaleCache(p.Step, err):
		c.behind++
		return reconcile.Result{RequeueAfter: request.Behind(c.behind)}, nil
	case errors.Is(err, request.ErrThrottled):
		r.setFailed(PhaseThrottled, errThrottled)
		result.RequeueAfter, err = request.ThrottleDelay, nil
	default:
		r.setFailed(PhaseConnecting, err)
		result.RequeueAfter = 0
	}
	c.publish(ctx, r)
	return result, err
}

// setFailed puts an error into the report; it does not end valid access.
func (r *Report) setFailed(phase Phase, err error) {
	r.Message = err.Error()
	if r.Phase == PhaseServing {
		r.Renewal = phase
		return
	}
	r.Phase = phase
}

// publish publishes the report if it changed.
func (c *Controller) publish(ctx context.Context, r Report) {
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
