// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// defaultWorkers is how many instances a loop works on at once.
const defaultWorkers = 4

// Config of a runner.
type Config struct {
	// Client reads and writes on the hub.
	Client dynamic.Interface
	// Rights, unless nil, gives agents their roles, bindings and certificates instead, so
	// that people grant what add-ons may have to another account than what runs them.
	Rights dynamic.Interface
	// Clock is that of conditions and deadlines.
	Clock clock.PassiveClock
	// Workers is how many clusters each loop works on at once; 0 is four. More make a
	// change of all clusters quicker, and the API server busier.
	Workers int
}

// Run runs an add-on until ctx ends. It returns at once, with an error that names the
// field, when its options are wrong. What cannot be read or written is tried again.
func Run(ctx context.Context, c Config, addOn addonkit.AddOn) error {
	r, err := New(c, addOn)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// Runner runs add-ons, all on the same watches.
type Runner struct{ *runner }

// New makes a runner of one add-on, for authors who look at something else than
// instances and clusters as well; others take Run. An error names the field of the
// options that is wrong.
func New(c Config, addOn addonkit.AddOn) (*Runner, error) {
	options := addOn.Options()
	if err := options.Check(); err != nil {
		return nil, fmt.Errorf("options of the add-on: %w", err)
	}
	find := func(a *addonv1alpha1.ManagedClusterAddOn) (addonkit.AddOn, bool) {
		return addOn, a.Name == options.Name
	}
	_, hosted := addOn.(addonkit.Hosted)
	r := newRunner(c, options.Name, find, scope{addOn: options.Name, hosted: hosted})
	r.watchHashes(options.Hashed)
	return &Runner{r}, nil
}

// Family says which add-ons a runner of NewMany runs.
type Family struct {
	// Name is part of the names of loops and of the field managers that they write by.
	Name string
	// Find returns the add-on that an instance is of; false leaves the instance as it
	// is. It is asked at each pass, so it may answer with what holds for this instance
	// only. None of them runs on hosting clusters.
	Find func(*addonv1alpha1.ManagedClusterAddOn) (addonkit.AddOn, bool)
	// Label is put, without a value, on everything that is bound for these add-ons, by
	// which it is told from what other runners on the hub bind. Their permissions name
	// roles that exist: none are made.
	Label string
	// Slim drops of a cluster what none of them reads, versions too: a change of what is
	// left brings up the instances of the cluster.
	Slim func(*clusterv1.ManagedCluster)
}

// NewMany makes a runner of add-ons whose names are not known before.
func NewMany(c Config, f Family) *Runner {
	return &Runner{newRunner(c, f.Name, f.Find, scope{label: f.Label, slim: f.Slim})}
}

// Run runs the add-ons until ctx ends. What cannot be read or written is tried again.
func (r *Runner) Run(ctx context.Context) error { return r.run(ctx) }

// Regrant tries again what was refused for want of a right: somebody granted something.
func (r *Runner) Regrant() {
	r.unregistered.Again()
	r.unanswered.Again()
}

// Look looks again at an instance, because something else than it or its cluster
// changed.
func (r *Runner) Look(instance reconcile.Key) { r.changed(instance) }

// LookAll looks again at all instances of a name.
func (r *Runner) LookAll(name string) {
	for _, key := range r.instances.all() {
		if key.Name == name {
			r.changed(key)
		}
	}
}

// Loops are the names of the loops that Run runs.
func (r *Runner) Loops() []string {
	out := []string{r.name("registration"), r.name("deploy"), r.name("request")}
	if r.hashes != nil {
		out = append(out, r.name("config"))
	}
	return out
}

// run starts watches, then loops.
func (r *runner) run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, w := range r.watches() {
		running.Go(func() { _ = w.Run(ctx) })
	}
	for _, w := range r.watches() {
		if err := w.WaitSynced(ctx); err != nil {
			r.close()
			return err
		}
	}
	if r.hashes != nil {
		running.Go(func() {
			_ = reconcile.Loop{Name: r.name("config"), Workers: r.Workers, Reconcile: r.reconcileHashes}.Run(ctx, r.hashes.queue)
		})
	}
	for _, l := range []struct {
		loop  reconcile.Loop
		queue *reconcile.Queue
	}{
		{reconcile.Loop{Name: r.name("registration"), Workers: r.Workers, Reconcile: r.reconcileRegistration}, r.register},
		{reconcile.Loop{Name: r.name("deploy"), Workers: r.Workers, Reconcile: r.reconcileDeploy}, r.deploy},
		{reconcile.Loop{Name: r.name("request"), Reconcile: r.reconcileRequest}, r.answer},
	} {
		running.Go(func() { _ = l.loop.Run(ctx, l.queue) })
	}
	<-ctx.Done()
	return nil
}

// close ends queues whose loops do not run.
func (r *runner) close() {
	for _, q := range []*reconcile.Queue{r.register, r.deploy, r.answer} {
		q.Close()
	}
	if r.hashes != nil {
		r.hashes.queue.Close()
	}
}
