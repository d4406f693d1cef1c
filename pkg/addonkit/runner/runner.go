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

// defaultWorkers is how many instances a loop reconciles concurrently.
const defaultWorkers = 4

// Config of a runner.
type Config struct {
	// Client reads and writes on the hub.
	Client dynamic.Interface
	// Rights, if set, is the client that creates roles, bindings and certificates for
	// agents, so that what add-ons may do is granted to another account than the one that
	// runs them.
	Rights dynamic.Interface
	// Clock is that of conditions and deadlines.
	Clock clock.PassiveClock
	// Workers is how many clusters each loop reconciles concurrently; 0 means four. More
	// make a change of all clusters faster, and the API server busier.
	Workers int
}

// Run runs an add-on until ctx ends. If its options are wrong, it returns at once with an
// error that names the field. Failed reads and writes are retried.
func Run(ctx context.Context, c Config, addOn addonkit.AddOn) error {
	r, err := New(c, addOn)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// Runner runs one or more add-ons on the same watches.
type Runner struct{ *runner }

// New returns a runner of one add-on, for authors who watch more than instances and
// clusters; others call Run. An error names the field of the options that is wrong.
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
	// Name is part of the names of loops and of their field managers.
	Name string
	// Find returns the add-on of an instance; false leaves the instance as it is. It is
	// called at each pass, so the result may hold for this instance only. None of these
	// add-ons runs on hosting clusters.
	Find func(*addonv1alpha1.ManagedClusterAddOn) (addonkit.AddOn, bool)
	// Label is set, with an empty value, on everything that is bound for these add-ons, to
	// distinguish it from what other runners on the hub bind. Their permissions refer to
	// existing roles; none are created.
	Label string
	// Slim drops from a cluster what none of them reads, including versions: a change in
	// what remains queues the instances of the cluster.
	Slim func(*clusterv1.ManagedCluster)
}

// NewMany returns a runner of add-ons whose names are not known in advance.
func NewMany(c Config, f Family) *Runner {
	return &Runner{newRunner(c, f.Name, f.Find, scope{label: f.Label, slim: f.Slim})}
}

// Run runs the add-ons until ctx ends. Failed reads and writes are retried.
func (r *Runner) Run(ctx context.Context) error { return r.run(ctx) }

// Regrant retries what was forbidden, after a permission was granted.
func (r *Runner) Regrant() {
	r.unregistered.Again()
	r.unanswered.Again()
}

// Look queues an instance because something other than it or its cluster changed.
func (r *Runner) Look(instance reconcile.Key) { r.changed(instance) }

// LookAll queues all instances of a name.
func (r *Runner) LookAll(name string) {
	for _, key := range r.instances.all() {
		if key.Name == name {
			r.changed(key)
		}
	}
}

// Loops returns the names of the loops that Run runs.
func (r *Runner) Loops() []string {
	var out []string
	for _, l := range r.loops {
		out = append(out, l.Name)
	}
	return out
}

// run starts watches, then loops.
func (r *runner) run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, w := range r.watched {
		running.Go(func() { _ = w.Run(ctx) })
	}
	for _, w := range r.watched {
		if err := w.WaitSynced(ctx); err != nil {
			r.close()
			return err
		}
	}
	for _, l := range r.loops {
		running.Go(func() { _ = l.Run(ctx, l.queue) })
	}
	<-ctx.Done()
	return nil
}

// close shuts down queues whose loops do not run.
func (r *runner) close() {
	for _, l := range r.loops {
		l.queue.Close()
	}
}
