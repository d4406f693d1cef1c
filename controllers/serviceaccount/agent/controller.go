// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/origin"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Name identifies the loop.
const Name = "serviceaccount.token"

// workers is how many accounts are served at a time: a pass mostly waits for answers.
const workers = 8

// maxSteps bounds the steps of a pass; a new account takes five.
const maxSteps = 10

// lateCache is how soon an account is looked at again that differs from the caches.
const lateCache = 100 * time.Millisecond

var (
	asked    = authenticationv1beta1.GroupVersion.WithResource("managedserviceaccounts")
	accounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	secrets  = corev1.SchemeGroupVersion.WithResource("secrets")
)

// Config configures a Controller; all fields but Log are required.
type Config struct {
	// Hub is the client for the hub, Managed that for the cluster.
	Hub, Managed dynamic.Interface
	// Cluster is the name of the cluster, and of its namespace on the hub.
	Cluster string
	// Namespace is where the accounts are on the cluster.
	Namespace string
	// HubAddress is the address of the hub's API server, which tells it from other hubs.
	HubAddress string
	// CA returns the PEM certificates that verify the API server of the cluster.
	CA    func() ([]byte, error)
	Clock clock.PassiveClock
	// Log reports what cannot be read.
	Log logr.Logger
}

// Controller is the loop. Make it with New and run it once.
type Controller struct {
	config   Config
	hub      string
	exec     *reconcile.Executor
	queue    *reconcile.Queue
	asked    *watch.Collection[*authenticationv1beta1.ManagedServiceAccount]
	accounts *watch.Collection[*Account]

	mu sync.Mutex
	// secrets are the watches of the Secrets, by name.
	secrets map[string]*watch.One[*Secret]
	// verdicts hold what the cluster said of the last token of each account.
	verdicts map[string]verdict
	ahead    time.Duration
}

// verdict is what the cluster said of a token.
type verdict struct {
	of  digest.Sum
	say Verdict
}

// New returns the loop, which runs with Run.
func New(c Config) *Controller {
	l := &Controller{
		config: c, hub: origin.Hub(c.HubAddress), exec: reconcile.NewExecutor(c.Hub, Name, c.Clock),
		queue: reconcile.NewQueue(Name), secrets: map[string]*watch.One[*Secret]{}, verdicts: map[string]verdict{},
	}
	l.asked = watch.New(watch.Options[*authenticationv1beta1.ManagedServiceAccount]{
		Client: c.Hub, Resource: asked, Namespace: c.Cluster, Log: c.Log,
		Keep: func(u *unstructured.Unstructured) (*authenticationv1beta1.ManagedServiceAccount, bool) {
			u.SetManagedFields(nil)
			a, err := typed.FromUnstructured[authenticationv1beta1.ManagedServiceAccount](u)
			return a, err == nil
		},
	})
	l.accounts = watch.New(watch.Options[*Account]{
		Client: c.Managed, Resource: accounts, Namespace: c.Namespace, Log: c.Log,
		Keep: func(u *unstructured.Unstructured) (*Account, bool) { return accountOf(u), true },
		Same: func(before, now *Account) bool { return *before == *now },
	})
	one := func(key reconcile.Key) { l.add(key.Name) }
	l.asked.OnChange(one)
	l.accounts.OnChange(one)
	return l
}

// add queues an account by its name.
func (c *Controller) add(name string) { c.queue.Add(reconcile.Key{Name: name}) }

// Err returns why the loop sees nothing new, or nil.
func (c *Controller) Err() error { return errors.Join(c.asked.Err(), c.accounts.Err()) }

// Run serves the accounts until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { _ = c.asked.Run(ctx) })
	running.Go(func() { _ = c.accounts.Run(ctx) })
	// Until both have synced, it is unknown what is missing and what is left over.
	if errors.Join(c.asked.WaitSynced(ctx), c.accounts.WaitSynced(ctx)) != nil {
		return nil // the program ends
	}
	defer c.close()
	return reconcile.Loop{Name: Name, Workers: workers, Reconcile: func(one context.Context, key reconcile.Key) (reconcile.Result, error) {
		return c.reconcile(one, ctx, key.Name)
	}}.Run(ctx, c.queue)
}

// close ends the watches of Secrets.
func (c *Controller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.secrets {
		w.Close()
	}
}

// look returns what the hub shows of the Secret of an account, and watches it from now on.
func (c *Controller) look(running context.Context, name string) watch.Sight[*Secret] {
	c.mu.Lock()
	w, ok := c.secrets[name]
	if !ok {
		w = watch.NewOne(watch.OneOptions[*Secret]{
			Resource: secrets, OnChange: func() { c.add(name) }, Log: c.config.Log,
			Keep: func(u *unstructured.Unstructured) (*Secret, bool) { return decode(u) },
		})
		c.secrets[name] = w
	}
	c.mu.Unlock()
	return w.Look(running, c.config.Hub, reconcile.Key{Namespace: c.config.Cluster, Name: name})
}

// decode returns what counts of a Secret of the API.
func decode(u *unstructured.Unstructured) (*Secret, bool) {
	s, err := typed.FromUnstructured[corev1.Secret](u)
	if err != nil {
		return nil, false
	}
	return secretOf(s), true
}

// forget ends the watch of a Secret that nobody needs any more.
func (c *Controller) forget(name string) {
	c.mu.Lock()
	w := c.secrets[name]
	delete(c.secrets, name)
	delete(c.verdicts, name)
	c.mu.Unlock()
	if w != nil {
		w.Close()
	}
}

// gather reads the caches.
func (c *Controller) gather(running context.Context, name string) (State, error) {
	ca, err := c.config.CA()
	if err != nil {
		return State{}, fmt.Errorf("reading the authority of the cluster: %w", err)
	}
	s := State{Name: name, Namespace: c.config.Namespace, Hub: c.hub, CA: ca, Now: c.config.Clock.Now()}
	s.Account, _ = c.accounts.Get(reconcile.Key{Namespace: c.config.Namespace, Name: name})
	var wanted bool
	if s.Asked, wanted = c.asked.Get(reconcile.Key{Namespace: c.config.Cluster, Name: name}); !wanted {
		c.forget(name)
		return s, nil
	}
	sight := c.look(running, name)
	s.Known, s.Unread = sight.Known, sight.Err
	if sight.Found {
		s.Secret = sight.Item
	}
	c.complete(&s)
	return s, nil
}

// complete adds what this process has learned about the token and the clock.
func (c *Controller) complete(s *State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Ahead, s.Verdict = c.ahead, Unreviewed
	if v := c.verdicts[s.Name]; s.Secret != nil && v.of == digest.OfParts(s.Secret.Text) {
		s.Verdict = v.say
	}
}

// learn remembers what the cluster says of a token.
func (c *Controller) learn(name, text string, say Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdicts[name] = verdict{of: digest.OfParts(text), say: say}
}

// reconcile takes steps until one account is as it should be. running ends with the loop.
func (c *Controller) reconcile(ctx, running context.Context, name string) (reconcile.Result, error) {
	s, err := c.gather(running, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	for range maxSteps {
		plan := Decide(s)
		if plan.Step == Done {
			return c.report(ctx, s, plan)
		}
		if err := c.take(ctx, &s, plan); err != nil {
			switch {
			case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
				return reconcile.Result{RequeueAfter: lateCache}, nil
			case s.Asked == nil:
				return reconcile.Result{}, err
			}
			_, failed := c.report(ctx, s, Plan{Object: s.failed(err)})
			return reconcile.Result{}, errors.Join(err, failed)
		}
		if plan.Step == Remove {
			return reconcile.Result{}, nil
		}
	}
	return reconcile.Result{}, fmt.Errorf("ServiceAccount %s/%s or its Secret changes with every step", c.config.Namespace, name)
}

// report writes the status, if it differs.
func (c *Controller) report(ctx context.Context, s State, plan Plan) (reconcile.Result, error) {
	if plan.Object == nil {
		return reconcile.Result{RequeueAfter: plan.RequeueAfter}, nil
	}
	return c.exec.Execute(ctx, s.Asked, reconcile.Plan{Object: plan.Object, RequeueAfter: plan.RequeueAfter})
}

// read reads account and Secret from their API servers.
func (c *Controller) read(ctx context.Context, s *State) error {
	account, err := c.config.Managed.Resource(accounts).Namespace(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s.Account = nil
	case err != nil:
		return fmt.Errorf("reading ServiceAccount %s/%s: %w", s.Namespace, s.Name, err)
	default:
		s.Account = accountOf(account)
	}
	secret, err := c.config.Hub.Resource(secrets).Namespace(c.config.Cluster).Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s.Secret = nil
	case err != nil:
		return fmt.Errorf("reading the Secret on the hub: %w", err)
	default:
		s.Secret, _ = decode(secret)
	}
	s.Fresh = true
	c.complete(s)
	return nil
}
