// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Name is the id of the loop.
const Name = "operator.klusterlet"

var (
	klusterletsResource = schema.GroupVersionResource{Group: operatorv1.GroupVersion.Group, Version: "v1", Resource: "klusterlets"}
	deploymentsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// Registration is the registration that the loop drives; credential.Controller implements it.
type Registration interface {
	// Configure starts the registration or changes its settings; nil stops it.
	Configure(*agent.Settings)
	// Report returns the state of the registration.
	Report() credential.Report
}

// Config configures a Controller; all fields are required.
type Config struct {
	// Spoke is a client of the cluster of the Klusterlet.
	Spoke dynamic.Interface
	// Name is the Klusterlet that this process serves, Namespace the namespace it runs in.
	Name, Namespace string
	// Definitions are the CustomResourceDefinitions to apply (config/crd.Agent).
	Definitions []*unstructured.Unstructured
	// Version is the version of this program.
	Version string
	// Others returns the other Klusterlets of this cluster that are not being deleted. The
	// caller calls Wake after a change.
	Others func() []string
	// UserAgent is the user agent of requests to the hub.
	UserAgent string
	// Secrets is the collection of credential.NewSecrets; its owner runs it after New.
	Secrets      *watch.Collection[credential.Secret]
	Registration Registration
	// WorkProblem returns why works are not applied; empty while they are.
	WorkProblem func() string
	// Hubs returns what is wrong with the list of hubs; empty without a problem or without a
	// list. The caller calls Wake after a change.
	Hubs func() string
	// Accepted reports whether the hub grants the agent its rights, as far as it is known.
	// After a change the hub is asked again.
	Accepted func() bool
	// Trouble returns what fails in the communication with the hub. The caller calls Wake
	// after a change.
	Trouble func() agent.Trouble
	// OnLimits is called with what limits the connections that the agent accepts, whenever that
	// changes; nil leaves it to the flags of the process. It must not block.
	OnLimits func(*observe.TLS)
	Clock    clock.PassiveClock
	Log      logr.Logger
}

// process is what is cached of the Deployment that runs the agent.
type process struct {
	generation int64
	pod        *shared.Pod
}

// Controller is the loop. Create it with New and run it once.
type Controller struct {
	config      Config
	queue       *reconcile.Queue
	execute     *reconcile.Executor
	klusterlets *watch.Collection[settings.Seen]
	shared      *shared.Watch
	deployment  *watch.Collection[process]
	limits      *limitsWatch
	policies    policies
	copies      copies

	bootstrap, hub access.Asker
	phase          credential.Phase
	accepted       bool
}

// New returns a Controller that is ready to run.
func New(o Config) *Controller {
	c := &Controller{
		config: o, queue: reconcile.NewQueue(Name), execute: reconcile.NewExecutor(o.Spoke, Name, o.Clock),
		bootstrap: access.Asker{Clock: o.Clock, UserAgent: o.UserAgent, Brief: true}, hub: access.Asker{Clock: o.Clock, UserAgent: o.UserAgent},
	}
	c.klusterlets = watch.New(watch.Options[settings.Seen]{
		Client: o.Spoke, Resource: klusterletsResource, FieldSelector: "metadata.name=" + o.Name, Log: o.Log, Keep: settings.Keep(o.Log),
	})
	wake := func(reconcile.Key) { c.Wake() }
	c.klusterlets.OnChange(wake)
	c.deployment = watch.New(watch.Options[process]{
		Client: o.Spoke, Resource: deploymentsResource, Namespace: o.Namespace,
		FieldSelector: "metadata.name=" + operatorv1.AgentDeployment(o.Name), Log: o.Log,
		Keep: func(u *unstructured.Unstructured) (process, bool) {
			return process{u.GetGeneration(), shared.ReadPod(u)}, true
		},
	})
	c.deployment.OnChange(wake)
	c.limits = watchLimits(o.Spoke, o.Namespace, o.OnLimits, o.Log)
	c.limits.OnChange(wake)
	c.limits.OnSynced(c.Wake)
	c.shared = shared.NewWatch(o.Spoke, o.Definitions, o.Version, c.Wake, o.Log)
	o.Secrets.OnChange(wake)
	o.Secrets.OnSynced(c.Wake)
	return c
}

// Wake requeues the Klusterlet. It is called when something that Config provides has changed.
func (c *Controller) Wake() { c.queue.Add(reconcile.Key{Name: c.config.Name}) }

// Run serves the Klusterlet until ctx is done.
func (c *Controller) Run(ctx context.Context) error {
	defer func() {
		c.policies.leave()
		c.copies.leave()
	}()
	return reconcile.Loop{Name: Name, Reconcile: c.Reconcile}.Run(ctx, c.queue)
}

// Collections returns the collections that the loop reads; the caller runs them.
func (c *Controller) Collections() []shared.Collection {
	return append(c.shared.Collections(), c.klusterlets, c.deployment, c.limits)
}

// Reconcile serves the Klusterlet of this process, and removes the agent when it is deleted.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	is, ok := c.klusterlets.Get(key)
	if !ok {
		c.config.Registration.Configure(nil)
		return reconcile.Result{}, nil
	}
	k := is.Klusterlet
	s := c.gather(ctx, k)
	s.Unreadable = is.Problem
	p := Decide(s)
	if p.Object == nil {
		c.config.Registration.Configure(nil)
		if p.Remove {
			return reconcile.Result{}, c.remove(ctx, s)
		}
		return reconcile.Result{RequeueAfter: p.RequeueAfter}, nil
	}
	result, err := c.execute.Execute(ctx, k, p.Plan)
	if err == nil && !p.Keep {
		c.config.Registration.Configure(p.Settings)
	}
	return result, err
}

// remove removes the agent, and tells why that fails.
func (c *Controller) remove(ctx context.Context, s State) error {
	err := teardown.AgentItself(ctx, c.config.Spoke, s.Klusterlet, c.config.Namespace)
	if err == nil {
		return nil
	}
	next := s.Klusterlet.DeepCopy()
	s.setCondition(next, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonManagedClusterResourceApplyFailed,
		"The agent cannot be removed: "+shared.Explain(err))
	_, told := c.execute.Execute(ctx, s.Klusterlet, reconcile.Plan{Object: next})
	return errors.Join(err, told)
}

// gather reads the caches, and what the hub grants to the current secrets.
func (c *Controller) gather(ctx context.Context, k *operatorv1.Klusterlet) State {
	s := State{
		Parts: c.shared.Parts(k.Name, c.config.Others()), Now: c.config.Clock.Now(), Klusterlet: k, Namespace: c.config.Namespace,
		Registration: c.config.Registration.Report(), WorkProblem: c.config.WorkProblem(), Trouble: c.config.Trouble(), Hubs: c.config.Hubs(),
		Policies: map[string]policy{}, Pull: pullSecret(), Profile: tlsProfile(),
	}
	select {
	case <-c.config.Secrets.Synced():
		s.SecretsKnown = true
	default:
	}
	if k.DeletionTimestamp == nil { // these go with it
		c.gatherPolicies(ctx, &s)
		c.gatherCopies(ctx, &s)
	}
	unread, known := shared.Problem(c.needed())
	if s.Reading = !known; unread != "" {
		s.Unread = "the agent cannot read what it needs: " + unread
	}
	if secret, ok := c.secret(operatorv1.SecretHubKubeconfig); ok {
		s.Joined = credential.ReadKept(secret, true).Certified()
	}
	if d, ok := c.deployment.Get(reconcile.Key{Namespace: c.config.Namespace, Name: operatorv1.AgentDeployment(k.Name)}); ok {
		s.Deployment, s.Pod = d.generation, d.pod
	}
	if k.DeletionTimestamp == nil && s.Registration.Phase != credential.PhaseStopped {
		c.gatherAccess(ctx, &s)
	}
	return s
}

// needed returns all collections that the loop reads now.
func (c *Controller) needed() []shared.Collection {
	out := append(c.Collections(), c.config.Secrets)
	if c.policies.end != nil {
		out = append(out, c.policies.live, c.policies.servers)
	}
	return append(out, c.copies.collections()...)
}

func (c *Controller) gatherAccess(ctx context.Context, s *State) {
	if accepted := c.config.Accepted(); c.phase != s.Registration.Phase || c.accepted != accepted {
		// What changed the phase may also have changed the hub's answer.
		c.phase, c.accepted = s.Registration.Phase, accepted
		c.bootstrap.Forget()
		c.hub.Forget()
	}
	if secret, ok := c.secret(operatorv1.SecretHubKubeconfig); ok {
		s.HubSecret = secret.Data
		kept := credential.ReadKept(secret, true)
		s.Hub = access.Answer{Problem: kept.Problem}
		if kept.Config != nil && kept.Identity.Cluster != "" && s.Registration.Unusable == "" {
			s.Hub = c.hub.Ask(ctx, string(secret.UID)+secret.ResourceVersion, kept.Config, access.Hub(kept.Identity.Cluster))
		}
	}
	c.gatherBootstrap(ctx, s)
}

// gatherBootstrap reads the bootstrap secret in use, and asks its hub about it if the hub
// kubeconfig does not work.
func (c *Controller) gatherBootstrap(ctx context.Context, s *State) {
	if s.Registration.Bootstrap == "" {
		// None of several secrets is in use, and the registration reports why.
		return
	}
	secret, ok := c.secret(s.Registration.Bootstrap)
	if !ok {
		return
	}
	s.BootstrapSecret = secret.Data
	if reason, _ := s.hubReason(); reason == "" {
		return
	}
	if s.isSilent() {
		// During a session both kubeconfigs point to the same hub.
		s.Bootstrap = access.Answer{Problem: "it goes to the same hub"}
		return
	}
	read := credential.ReadBootstrap(secret.Name, secret.Data)
	s.Bootstrap = access.Answer{Problem: read.Problem}
	if read.Config != nil {
		s.Bootstrap = c.bootstrap.Ask(ctx, read.Digest, read.Config, access.Bootstrap())
	}
}

func (c *Controller) secret(name string) (credential.Secret, bool) {
	return c.config.Secrets.Get(reconcile.Key{Namespace: c.config.Namespace, Name: name})
}
