// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"cmp"
	"context"
	"errors"
	"slices"
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

// Name identifies this loop.
const Name = "addon.registration"

// Place is a cluster where secrets are kept.
type Place struct {
	// Client sends all writes.
	Client dynamic.Interface
	// Secrets is a collection made by NewSecrets; its owner runs it, after New.
	Secrets *watch.Collection[Secret]
}

// Config configures a Controller; all fields but HubID, the driver and the seconds are
// required.
type Config struct {
	// Hub is the client for the hub with the agent's identity.
	Hub dynamic.Interface
	// Cluster is the name of the ManagedCluster.
	Cluster string
	// Endpoint is the hub as named in the add-ons' kubeconfigs.
	Endpoint *kubeconfig.Config
	// HubID identifies the hub independently of its location; credentials made for another
	// hub are dropped. Empty means the Endpoint.
	HubID string
	// AddOns are the cluster's add-ons. Its owner runs it, after New.
	AddOns *addon.AddOns
	// Spoke is the managed cluster, Management the one the agent runs on: the same pointer if
	// they are the same cluster.
	Spoke, Management *Place
	// Namespace is the agent's namespace; requests in progress are kept there.
	Namespace string
	// Driver is how add-ons get access to the hub's API server; empty means by certificates.
	Driver addonv1alpha1.DriverType
	// CertificateSeconds is the certificate lifetime to request; 0 leaves it to the hub.
	CertificateSeconds int32
	// TokenSeconds is the token lifetime to request; 0 means a year.
	TokenSeconds int64
	Clock        clock.PassiveClock
}

// Controller is the loop. Make it with New and run it once.
type Controller struct {
	config  Config
	queue   *reconcile.Queue
	execute *reconcile.Executor
	// kubeconfigs are the kubeconfigs for the secrets, by driver.
	kubeconfigs map[addonv1alpha1.DriverType][]byte

	mu sync.Mutex
	// owners maps secrets to their add-ons, to find the add-on of a deleted secret.
	owners map[slot]string
	// contested are the add-ons whose secret is taken by another one.
	contested map[string]bool

	// The fields below are used by the single worker only.
	entries map[slot]*entry
}

// slot is the location and name of a secret.
type slot struct {
	place *Place
	key   reconcile.Key
}

// secrets are the secrets in the same namespace.
func (s slot) secrets() dynamic.ResourceInterface {
	return s.place.Client.Resource(request.Secrets).Namespace(s.key.Namespace)
}

// New prepares the loop.
func New(o Config) (*Controller, error) {
	o.Driver, o.HubID = cmp.Or(o.Driver, addonv1alpha1.DriverTypeCSR), cmp.Or(o.HubID, o.Endpoint.ID())
	o.TokenSeconds = cmp.Or(o.TokenSeconds, addonv1alpha1.DefaultTokenSeconds)
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
	o.AddOns.OnChange(c.addOnChanged)
	for _, p := range c.places() {
		p.Secrets.OnChange(func(k reconcile.Key) { c.secretWritten(slot{p, k}) })
	}
	return c, nil
}

// places returns the clusters where secrets are kept, without duplicates.
func (c *Controller) places() []*Place {
	return slices.Compact([]*Place{c.config.Spoke, c.config.Management})
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

// addOnChanged wakes an add-on, and those waiting for a secret of another one.
func (c *Controller) addOnChanged(k reconcile.Key) {
	// New content is a new intent: earlier failures do not delay it.
	c.queue.Forget(k)
	c.queue.Add(k)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.contested {
		c.wake(name)
	}
}

// secretWritten wakes the add-on whose secret was written or removed.
func (c *Controller) secretWritten(s slot) {
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

// Run runs the loop until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	// Nothing may be concluded from the absence of an object before all are known; a
	// collection without objects sends no event when it is complete.
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
		c.dropEntry(s)
	}
	return err
}

// Reconcile is one pass over an add-on: one step for each registration, then its conditions.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	a, ok := c.config.AddOns.Get(key)
	if !ok {
		c.setContested(key.Name, false)
		return reconcile.Result{}, c.dropUnwanted(ctx, key.Name, nil)
	}
	if a == nil {
		return reconcile.Result{}, nil
	}
	after := a.DeepCopy()
	prepare(after, c.config.Driver)
	if !sameRegistrations(a, after) {
		// The hub reacts to the driver, and the registrations may then change.
		return c.execute.Execute(ctx, a, reconcile.Plan{Object: after})
	}
	wants := c.assignSecrets(key.Name, wantsOf(after, c.config.HubID))
	var result reconcile.Result
	var errs []error
	reports := make([]report, 0, len(wants))
	for _, w := range wants {
		r, again, err := c.runStep(ctx, after, w)
		reports = append(reports, r)
		result = result.Sooner(reconcile.Result{RequeueAfter: again})
		errs = append(errs, err)
	}
	if after.DeletionTimestamp == nil {
		errs = append(errs, c.dropUnwanted(ctx, key.Name, wants))
	}
	setConditions(after, reports, c.config.Clock.Now())
	told, err := c.execute.Execute(ctx, a, reconcile.Plan{Object: after})
	return result.Sooner(told), errors.Join(append(errs, err)...)
}

// runStep takes one step for one registration: gather, decide, execute. It returns what to
// report and when to run again.
func (c *Controller) runStep(ctx context.Context, a *addonv1alpha1.ManagedClusterAddOn, w Want) (report, time.Duration, error) {
	s := c.gather(ctx, a, w)
	p := Decide(s)
	if w.Problem != "" {
		return report{token: w.Token(), phase: p.Phase, message: p.Message}, p.RequeueAfter, nil
	}
	e, again := c.entry(ctx, w), p.RequeueAfter
	err := c.carryOut(ctx, s, p)
	switch {
	case err == nil:
		e.behind = 0
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err),
		apierrors.IsNotFound(err) && p.Step != request.StepAsk && p.Step != stepToken && s.Namespace != Blind:
		// The caches were behind; they may not be updated for a while.
		e.behind++
		again, err = request.Behind(e.behind), nil
	case errors.Is(err, request.ErrThrottled):
		p.Phase, p.Message, again, err = PhaseFailed, throttled, request.ThrottleDelay, nil
	default:
		p.Phase, p.Message = PhaseFailed, err.Error()
		logr.FromContextOrDiscard(ctx).V(1).Info("Step failed", "addon", w.AddOn, "secret", w.Name, "error", err.Error())
	}
	r := report{token: w.Token(), phase: p.Phase, message: p.Message}
	switch {
	case p.Phase != PhaseWaiting:
		e.waits = time.Time{}
	case e.waits.IsZero():
		e.waits = s.Now
	}
	if wait := e.waits.Add(quiet).Sub(s.Now); p.Phase == PhaseWaiting && wait > 0 {
		r.fresh = true
		again = reconcile.Result{RequeueAfter: again}.Sooner(reconcile.Result{RequeueAfter: wait}).RequeueAfter
	}
	return r, again, err
}
