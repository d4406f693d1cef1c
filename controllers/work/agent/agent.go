// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	workapply "github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/apply"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/finalize"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/ledger"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/rules"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/discovery"
	"github.com/kubectl-ocm/kubectl-ocm/internal/feedback"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

const (
	// loopName is the dotted id of the loop.
	loopName = "work.apply"
	// DefaultWorkers is how many works are reconciled at once.
	DefaultWorkers = 10
	// DefaultSealAfter is how long the works have to be at rest before the agent notes, for
	// its next start, that the objects of each are as they were applied.
	DefaultSealAfter = 500 * time.Millisecond
	// DefaultGrace is how long the objects of a work are kept after it vanished from the
	// hub.
	DefaultGrace = time.Hour
)

// Config is the configuration of a work agent.
type Config struct {
	// Hub is the client configuration of the cluster's identity on the hub, Spoke that of
	// the agent on its own cluster. Their rate limits are not used: API priority and
	// fairness bounds an agent that is only woken by events.
	Hub, Spoke *rest.Config
	// ClusterName is the cluster's name and its namespace on the hub.
	ClusterName string
	// AgentID identifies this agent; HubHash is used if it is empty.
	AgentID string
	// HubHash is the lower-case hex SHA-256 of the hub's server address. It is the prefix
	// of AppliedManifestWork names.
	HubHash string
	// Grace is how long the objects of a work are kept after it vanished from the hub;
	// zero means DefaultGrace. Lower it only in tests: a hub that is restored from a
	// backup lacks works for a while.
	Grace time.Duration
	// Workers is how many works are reconciled at once; zero means DefaultWorkers. More
	// workers help when API servers are slow to answer, and cost memory for that many
	// works at a time.
	Workers int
	// SealAfter is how long the works have to be at rest before the agent notes, for its
	// next start, that the objects of each are as they were applied; zero means
	// DefaultSealAfter. A longer time spares writes where works change often.
	SealAfter time.Duration
	// Feedback selects the values that feedback rules return: the feature gate
	// RawFeedbackJsonString and the maximum length of such a value.
	Feedback feedback.Options
	// Pulse beats when the hub answers; may be nil.
	Pulse *watch.Pulse
	// Metrics record the state of the works; may be nil.
	Metrics *Metrics
	// Clock gives the time and the timers.
	Clock clock.WithTicker
	// Log is where the agent logs what a person may act on.
	Log logr.Logger
}

func (c *Config) complete() error {
	switch {
	case c.Hub == nil || c.Spoke == nil:
		return errors.New("starting the work agent: a client configuration for the hub and one for this cluster are needed")
	case c.ClusterName == "" || c.HubHash == "":
		return errors.New("starting the work agent: the cluster name and the hub hash are needed")
	case c.Clock == nil:
		return errors.New("starting the work agent: a clock is needed")
	}
	c.AgentID = cmp.Or(c.AgentID, c.HubHash)
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.SealAfter = cmp.Or(c.SealAfter, DefaultSealAfter)
	c.Metrics = cmp.Or(c.Metrics, &Metrics{})
	c.Workers = cmp.Or(c.Workers, DefaultWorkers)
	return nil
}

// Run runs the work agent until ctx ends, and returns when its last pass has ended. It
// can be run again, also with another configuration; all its state is stored on the two
// API servers.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	a, err := build(cfg)
	if err != nil {
		return fmt.Errorf("starting the work agent: %w", err)
	}
	return a.run(logr.NewContext(ctx, cfg.Log))
}

// agent holds the parts of a running work agent.
type agent struct {
	cfg     Config
	queue   *reconcile.Queue
	works   *ledger.Works
	applied *ledger.Applied
	tracker *drift.Tracker
	rights  *executor.Checker
	apply   *workapply.Controller
	lag     lag
	// passes counts the passes of the loop.
	passes   atomic.Uint64
	finalize *finalize.Controller
	events   *reconcile.Executor
}

// build creates and connects the parts; nothing runs yet.
func build(cfg Config) (*agent, error) {
	cfg.Spoke = rest.CopyConfig(cfg.Spoke)
	cfg.Spoke.Wrap(apply.Patient)
	hub, err := dynamic.NewForConfig(client(cfg.Hub))
	if err != nil {
		return nil, fmt.Errorf("making the hub client: %w", err)
	}
	spoke, err := dynamic.NewForConfig(client(cfg.Spoke))
	if err != nil {
		return nil, fmt.Errorf("making the cluster client: %w", err)
	}
	metadata, err := drift.MetadataOnly(client(cfg.Spoke))
	if err != nil {
		return nil, fmt.Errorf("making the metadata client: %w", err)
	}
	mapper, err := discovery.New(client(cfg.Spoke), cfg.Clock)
	if err != nil {
		return nil, err
	}
	a := &agent{cfg: cfg, queue: reconcile.NewQueue(loopName), events: reconcile.NewExecutor(hub, loopName, cfg.Clock)}
	identity := ledger.Identity{HubHash: cfg.HubHash, AgentID: cfg.AgentID}
	a.works = ledger.NewWorks(hub, cfg.ClusterName, cfg.Pulse, cfg.Log, func(name string) {
		a.noteLag(name)
		a.wake(identity.Name(name))
	})
	a.applied = ledger.NewApplied(spoke, identity, cfg.Log, a.wake)
	a.tracker = drift.New(drift.Config{
		Metadata: metadata, Clock: cfg.Clock, Log: cfg.Log,
		Wake: a.wake, Defined: mapper.Invalidate, OnBlind: a.reportBlind,
	})
	if a.rights, err = executor.New(executor.Config{
		Spoke: client(cfg.Spoke), Metadata: metadata, Wake: a.wake, Clock: cfg.Clock, Log: cfg.Log,
	}); err != nil {
		return nil, err
	}
	applier := apply.New(spoke, mapper)
	a.apply = workapply.New(workapply.Config{
		Works: a.works, Applied: a.applied, Mapper: mapper, Applier: applier,
		Watcher:   a.tracker,
		Feedback:  cfg.Feedback,
		Rules:     rules.New(),
		Rights:    a.rights,
		Event:     a.event,
		Repaired:  func() { cfg.Metrics.repairs.Add(1) },
		SealAfter: cfg.SealAfter,
		Clock:     cfg.Clock,
	})
	a.finalize = finalize.New(finalize.Config{
		Works: a.works, Applied: a.applied, Applier: applier, Rights: a.rights, Track: a.tracker.Track,
		Event: func(ctx context.Context, name string, event reconcile.Event) {
			a.event(ctx, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cfg.ClusterName, Name: name}}, event)
		},
		Grace: cfg.Grace, Clock: cfg.Clock,
	})
	return a, nil
}

// client returns a copy of a configuration without client-side rate limits, and without
// logging warnings of API servers: they quote the content of works.
func client(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.QPS, out.Burst, out.RateLimiter = -1, 0, nil
	out.WarningHandler, out.WarningHandlerWithContext = rest.NoWarnings{}, nil
	return out
}

// run runs the watches, and the loop once both sides are synced.
func (a *agent) run(ctx context.Context) error {
	a.cfg.Metrics.current.Store(a)
	defer a.cfg.Metrics.current.Store(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.works.Run(ctx) })
	group.Go(func() error { return a.applied.Run(ctx) })
	tracked := make(chan struct{})
	group.Go(func() error {
		// What is recorded is tracked before the watches begin, so that each lists once.
		if a.applied.WaitSynced(ctx) == nil {
			for _, name := range a.applied.Names() {
				if applied := a.applied.Get(name); applied != nil {
					a.tracker.Track(name, drift.Recorded(applied.Status.AppliedResources)) //nolint:contextcheck // watches go on after the call that began them
				}
			}
		}
		close(tracked)
		return a.tracker.Run(ctx)
	})
	group.Go(func() error { return a.rights.Run(ctx) })
	group.Go(func() error { return a.giveBack(ctx) })
	group.Go(func() error {
		loop := reconcile.Loop{Name: loopName, Workers: a.cfg.Workers, Reconcile: a.reconcile}
		if a.works.WaitSynced(ctx) == nil && a.applied.WaitSynced(ctx) == nil {
			for _, name := range a.applied.Names() {
				a.wake(name)
			}
		}
		<-tracked
		// Without both lists ctx has ended, and the loop only closes its queue.
		return loop.Run(ctx, a.queue)
	})
	return group.Wait()
}

func (a *agent) wake(name string) { a.queue.Add(reconcile.Key{Name: name}) }

// reconcile passes a key to the controller that handles it.
func (a *agent) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	a.passes.Add(1)
	name, ours := a.applied.Identity.Work(key.Name)
	if !ours {
		return a.finalize.Reconcile(ctx, key.Name)
	}
	applied := a.applied.Get(key.Name)
	work, there := a.works.Get(name)
	if there && !work.Deleting && (applied == nil || applied.DeletionTimestamp == nil) {
		result, err := a.apply.Reconcile(ctx, work)
		a.noteLag(name)
		return result, err
	}
	a.apply.Forget(name) //nolint:contextcheck // watches go on after the call that ended some
	a.lag.clear(name)
	return a.finalize.Reconcile(ctx, key.Name)
}

// restEvery is how long the loop must be idle before memory is given back.
const restEvery = 10 * time.Second

// giveBack returns memory to the system after each busy period of the loop: what is
// garbage by then would stay with the process for minutes.
func (a *agent) giveBack(ctx context.Context) error {
	ticker := a.cfg.Clock.NewTicker(restEvery)
	defer ticker.Stop()
	var given, last uint64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		now := a.passes.Load()
		if now == last && now-given >= manyPasses {
			runtime.GC() // what pools keep is only free after a second collection
			debug.FreeOSMemory()
			given = now
		}
		last = now
	}
}

// manyPasses is how many passes justify a collection of the whole heap.
const manyPasses = 20

// noteLag records whether the newest generation of a work is applied.
func (a *agent) noteLag(name string) {
	work, there := a.works.Get(name)
	stands := a.apply.Standing(name)
	if !there || work.Deleting || (stands.Generation == work.Generation && !stands.Failing) {
		a.lag.clear(name)
		return
	}
	a.lag.record(name, a.cfg.Clock.Now())
}

// event records an Event beside a work on the hub.
func (a *agent) event(ctx context.Context, work *workv1.ManifestWork, event reconcile.Event) {
	work = work.DeepCopy()
	work.SetGroupVersionKind(workv1.GroupVersion.WithKind("ManifestWork"))
	if _, err := a.events.Execute(ctx, work, reconcile.Plan{Events: []reconcile.Event{event}}); err != nil {
		logr.FromContextOrDiscard(ctx).V(1).Info("Event was not recorded", "work", work.Name, "error", err.Error())
	}
}

// reportBlind reports once for each resource that its drift is only found by reading its
// objects once a minute, in an Event on a work that declares one.
func (a *agent) reportBlind(name string, resource schema.GroupVersionResource, namespace string, cause error) {
	a.cfg.Log.Info("Objects may not be watched and are read once a minute",
		"resource", resource.GroupResource().String(), "namespace", namespace, "cause", cause.Error())
	work, ours := a.applied.Identity.Work(name)
	known, there := a.works.Get(work)
	if !ours || !there {
		return
	}
	ctx, cancel := context.WithTimeout(logr.NewContext(context.Background(), a.cfg.Log), eventTimeout)
	defer cancel()
	a.event(ctx, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: a.cfg.ClusterName, Name: known.Name, UID: known.UID, ResourceVersion: known.Version,
	}}, unwatched(resource, cause))
}

// unwatched is the Event for a resource that cannot be watched because of cause.
func unwatched(resource schema.GroupVersionResource, cause error) reconcile.Event {
	reason, message := "WatchForbidden", fmt.Sprintf(
		"%s may not be listed and watched by the agent, so changes are found only once a minute; grant it list and watch", resource.GroupResource())
	if apierrors.IsNotFound(cause) {
		reason, message = "KindNotServed", fmt.Sprintf(
			"%s of version %s is not served by the cluster, so its objects are read once a minute; install its definition",
			resource.GroupResource(), resource.Version)
	}
	return reconcile.Event{Type: "Warning", Reason: reason, Action: "Watch", Message: message}
}

// eventTimeout bounds the sending of an Event that no pass waits for.
const eventTimeout = 10 * time.Second
