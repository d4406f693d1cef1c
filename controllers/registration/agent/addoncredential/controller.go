// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Name is the id of this loop.
const Name = "addon.registration"

// Place is a cluster that secrets are kept on.
type Place struct {
	// Client writes.
	Client dynamic.Interface
	// Secrets is a collection of NewSecrets; its owner runs it, after New.
	Secrets *watch.Collection[Secret]
}

// Config is what a Controller works with; all but the seconds and the driver are required.
type Config struct {
	// Hub is the connection under the agent's identity.
	Hub dynamic.Interface
	// Cluster is the name of the ManagedCluster.
	Cluster string
	// Endpoint is the hub as the add-ons' kubeconfigs name it.
	Endpoint *kubeconfig.Config
	// HubID names the hub wherever it is; credentials that were made for another
	// one are dropped. Empty means the Endpoint.
	HubID string
	// AddOns are those of the cluster. Its owner runs it, after New.
	AddOns *addon.AddOns
	// Spoke is the managed cluster, Management the one that the agent runs on:
	// the same pointer where they are the same.
	Spoke, Management *Place
	// Namespace is that of the agent; requests under way are kept there.
	Namespace string
	// Driver is how add-ons get access to the hub's API server; empty means by
	// certificates.
	Driver addonv1alpha1.DriverType
	// CertificateSeconds is the life that is asked for; 0 leaves it to the hub.
	CertificateSeconds int32
	// TokenSeconds is the life of tokens that is asked for; 0 means a year.
	TokenSeconds int64
	Clock        clock.PassiveClock
}

// Controller is the loop. Make it with New, run it once.
type Controller struct {
	config  Config
	queue   *reconcile.Queue
	execute *reconcile.Executor
	// kubeconfigs are those of the secrets, by driver.
	kubeconfigs map[addonv1alpha1.DriverType][]byte

	mu sync.Mutex
	// owners remembers whose a secret is, to know it when it is gone.
	owners map[slot]string
	// contested are the add-ons that cannot have a secret because another one
	// has it.
	contested map[string]bool

	// The rest belongs to the one worker.
	entries map[slot]*entry
}

// slot is a secret's place and name.
type slot struct {
	place *Place
	key   reconcile.Key
}

// New prepares the loop.
func New(o Config) (*Controller, error) {
	if o.Driver == "" {
		o.Driver = addonv1alpha1.DriverTypeCSR
	}
	if o.HubID == "" {
		o.HubID = o.Endpoint.ID()
	}
	if o.TokenSeconds == 0 {
		o.TokenSeconds = addonv1alpha1.DefaultTokenSeconds
	}
	c := &Controller{
		config: o, queue: reconcile.NewQueue(Name), execute: reconcile.NewExecutor(o.Hub, Name, o.Clock),
		owners: map[slot]string{}, contested: map[string]bool{}, entries: map[slot]*entry{},
	}
	byCertificate, err := o.Endpoint.Kept()
	if err != nil {
		return nil, err
	}
	byToken, err := o.Endpoint.KeptToken()
	if err != nil {
		return nil, err
	}
	c.kubeconfigs = map[addonv1alpha1.DriverType][]byte{addonv1alpha1.DriverTypeCSR: byCertificate, addonv1alpha1.DriverTypeToken: byToken}
	o.AddOns.OnChange(c.changed)
	for _, p := range c.places() {
		p.Secrets.OnChange(func(k reconcile.Key) { c.written(slot{p, k}) })
	}
	return c, nil
}

// places are the clusters that secrets are kept on, each once.
func (c *Controller) places() []*Place {
	if c.config.Spoke == c.config.Management {
		return []*Place{c.config.Spoke}
	}
	return []*Place{c.config.Spoke, c.config.Management}
}

func (c *Controller) place(hosted bool) *Place {
	if hosted {
		return c.config.Management
	}
	return c.config.Spoke
}

func (c *Controller) wake(addOn string) {
	c.queue.Add(reconcile.Key{Namespace: c.config.Cluster, Name: addOn})
}

// changed wakes an add-on, and those that wait for a secret of another one.
func (c *Controller) changed(k reconcile.Key) {
	// New content is a new intent: failures of the old do not hold it back.
	c.queue.Forget(k)
	c.queue.Add(k)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.contested {
		c.wake(name)
	}
}

// written wakes the add-on whose secret was written or removed.
func (c *Controller) written(s slot) {
	now, ok := s.place.Secrets.Get(s.key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, had := c.owners[s]; had {
		c.wake(before)
	}
	if !ok {
		delete(c.owners, s)
		return
	}
	c.owners[s] = now.AddOn
	c.wake(now.AddOn)
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	// Nothing may be decided on the absence of an object before all are known;
	// a collection without objects tells of nothing when it is complete.
	err := c.config.AddOns.WaitSynced(ctx)
	for _, p := range c.places() {
		err = errors.Join(err, p.Secrets.WaitSynced(ctx))
	}
	if err != nil {
		c.queue.Close()
		return err
	}
	err = reconcile.Loop{Name: Name, Reconcile: c.Reconcile}.Run(ctx, c.queue)
	for s := range c.entries {
		c.leave(s)
	}
	return err
}

// Reconcile is one pass over an add-on: one step for each registration, then
// what is told of it.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	a, ok := c.config.AddOns.Get(key)
	if !ok {
		c.contend(key.Name, false)
		return reconcile.Result{}, c.drop(ctx, key.Name, nil)
	}
	if a == nil {
		return reconcile.Result{}, nil
	}
	after := a.DeepCopy()
	prepare(after, c.config.Driver)
	if !same(a, after) {
		// The hub reacts to the driver; the registrations may be others then.
		return c.execute.Execute(ctx, a, reconcile.Plan{Object: after})
	}
	wants := c.allot(key.Name, wantsOf(after, c.config.HubID))
	var result reconcile.Result
	var errs []error
	reports := make([]report, 0, len(wants))
	for _, w := range wants {
		r, again, err := c.pass(ctx, after, w)
		reports = append(reports, r)
		result = result.Sooner(reconcile.Result{RequeueAfter: again})
		errs = append(errs, err)
	}
	if after.DeletionTimestamp == nil {
		errs = append(errs, c.drop(ctx, key.Name, wants))
	}
	tell(after, reports, c.config.Clock.Now())
	told, err := c.execute.Execute(ctx, a, reconcile.Plan{Object: after})
	return result.Sooner(told), errors.Join(append(errs, err)...)
}

// pass is one step of one registration: gather, decide, execute. It returns
// what to tell of it and when to come again.
func (c *Controller) pass(ctx context.Context, a *addonv1alpha1.ManagedClusterAddOn, w Want) (report, time.Duration, error) {
	s := c.gather(ctx, a, w)
	p := Decide(s)
	again := p.RequeueAfter
	err := c.carryOut(ctx, s, p)
	switch {
	case err == nil:
		c.caughtUp(s)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err) && p.Step != request.StepAsk && p.Step != stepToken:
		// The cache was behind.
		again, err = c.behind(s), nil
	case errors.Is(err, errThrottled):
		p.Phase, p.Message, again, err = PhaseFailed, errThrottled.Error(), throttleDelay, nil
	default:
		p.Phase, p.Message = PhaseFailed, err.Error()
		logr.FromContextOrDiscard(ctx).V(1).Info("Step failed", "addon", w.AddOn, "secret", w.Name, "error", err.Error())
	}
	r := report{token: w.Token(), phase: p.Phase, message: p.Message}
	if wait := c.patience(s, p); wait > 0 {
		r.fresh = true
		again = reconcile.Result{RequeueAfter: again}.Sooner(reconcile.Result{RequeueAfter: wait}).RequeueAfter
	}
	return r, again, err
}

// behind is how soon to come again because the caches were behind: soon, and
// later each time, because a cache may not be kept current at all for a while.
func (c *Controller) behind(s State) time.Duration {
	e := c.entry(c.slotOf(s.Want.Target))
	e.behind++
	return request.Behind(e.behind)
}

func (c *Controller) caughtUp(s State) {
	if e := c.entries[c.slotOf(s.Want.Target)]; e != nil {
		e.behind = 0
	}
}

// patience is for how long a wait is still too short to be told of.
func (c *Controller) patience(s State, p Plan) time.Duration {
	if s.Want.Problem != "" {
		return 0
	}
	e := c.entry(c.slotOf(s.Want.Target))
	if p.Phase != PhaseWaiting {
		e.waits = time.Time{}
		return 0
	}
	if e.waits.IsZero() {
		e.waits = s.Now
	}
	return e.waits.Add(quiet).Sub(s.Now)
}
