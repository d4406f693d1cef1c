// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// renewAfter is how long objects are gathered whose watch has to restart: each restart
// lists everything in its scope.
const renewAfter = time.Second

// PollEvery is how often works read objects that may not be watched.
const PollEvery = time.Minute

// Sight is what a Tracker knows of an object.
type Sight int

const (
	// Unknown: the watch has not listed yet; it wakes the work when it has.
	Unknown Sight = iota
	// Present: the object is as returned by Look.
	Present
	// Absent: the watch shows no such object.
	Absent
	// Blind: the object may not be watched and has to be read.
	Blind
)

// Config holds the dependencies of a Tracker.
type Config struct {
	// Metadata reads metadata only (see MetadataOnly).
	Metadata dynamic.Interface
	// Clock drives the one-minute timer for objects that may not be watched.
	Clock clock.WithTicker
	// Log logs which resources may not be watched.
	Log logr.Logger
	// Wake is called with the works that declare a changed object.
	Wake func(work string)
	// Defined is called when a CustomResourceDefinition was added or changed, before the
	// works that wait for a kind are woken.
	Defined func()
	// OnBlind is called once for each resource that may not be watched, with a work that
	// declares it.
	OnBlind func(work string, resource schema.GroupVersionResource, namespace string, err error)
}

// Object is one object that a work declares.
type Object struct {
	// Resource, Namespace and Name identify it.
	Resource        schema.GroupVersionResource
	Namespace, Name string
	// Marked is set when the object carries an owner reference of a work, so that a
	// running watch recognizes it by itself.
	Marked bool
}

// Recorded returns recorded objects as those to watch.
func Recorded(list []workv1.AppliedManifestResourceMeta) []Object {
	out := make([]Object, 0, len(list))
	for _, r := range list {
		out = append(out, Object{Resource: apply.Resource(r), Namespace: r.Namespace, Name: r.Name, Marked: true})
	}
	return out
}

// Tracker watches what works declare. Track may be called at any time.
type Tracker struct {
	c Config

	mu sync.Mutex
	// ctx is that of Run; watches start while it is set.
	ctx     context.Context
	running sync.WaitGroup
	objects tables
	works   map[string]*holder
	// waiting are the works that declare a kind that does not exist.
	waiting map[string]bool
	watches map[scope]*watcher
	// wide are the resources that may not be watched cluster-wide.
	wide        map[schema.GroupVersionResource]bool
	definitions *watcher
	// unseen are objects whose watch has to restart before it can show them; the first of
	// them schedules the restart.
	unseen map[place]bool
}

// place names one object of the cluster.
type place struct {
	resource schema.GroupVersionResource
	key      reconcile.Key
}

// New returns a Tracker that watches nothing yet.
func New(c Config) *Tracker {
	return &Tracker{
		c: c, objects: tables{}, works: map[string]*holder{},
		waiting: map[string]bool{}, watches: map[scope]*watcher{}, wide: map[schema.GroupVersionResource]bool{},
		unseen: map[place]bool{},
	}
}

// Run runs the watches until ctx ends.
func (t *Tracker) Run(ctx context.Context) error {
	t.mu.Lock()
	t.ctx = ctx
	t.adjust() //nolint:contextcheck // watches live as long as the tracker, not as the pass that wants them
	t.mu.Unlock()
	ticker := t.c.Clock.NewTicker(PollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			// A pass may be starting a watch right now: after this none starts any more.
			t.mu.Lock()
			t.ctx = nil
			t.mu.Unlock()
			t.running.Wait()
			return nil
		case <-ticker.C():
			t.wakeBlind()
		}
	}
}

// Track replaces what a work declares; an empty list forgets the work.
func (t *Tracker) Track(work string, objects []Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := &holder{work: work, objects: make([]object, 0, len(objects))}
	for _, o := range objects {
		// The name may be a substring of a larger text, which must not be kept in memory
		// with it.
		key := reconcile.Key{Namespace: o.Namespace, Name: strings.Clone(o.Name)}
		held, first := t.objects.hold(o.Resource, key, next)
		if first {
			t.renew(place{o.Resource, key}, o.Marked)
		}
		next.objects = append(next.objects, held)
	}
	if before := t.works[work]; before != nil {
		for _, o := range before.objects {
			t.objects.release(o, before)
		}
	}
	if len(objects) == 0 {
		delete(t.works, work)
	} else {
		t.works[work] = next
	}
	t.adjust()
}

// Wait records whether a work waits for a kind that does not exist.
func (t *Tracker) Wait(work string, waits bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if waits {
		t.waiting[work] = true
	} else {
		delete(t.waiting, work)
	}
	t.adjust()
}

// Look returns what is known of an object without a request.
func (t *Tracker) Look(resource schema.GroupVersionResource, namespace, name string) (apply.Seen, Sight) {
	key := reconcile.Key{Namespace: namespace, Name: name}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := cmp.Or(t.watches[scope{resource: resource}], t.watches[scope{resource, namespace}])
	if w == nil || t.unseen[place{resource, key}] {
		return apply.Seen{}, Unknown
	}
	return w.sightOf(key)
}

// renew restarts the watch if it may already have dropped the object as not ours: only
// objects with an owner reference of a work are recognized by themselves. The caller
// holds the lock.
func (t *Tracker) renew(o place, marked bool) {
	if marked || (t.watches[scope{resource: o.resource}] == nil && t.watches[scope{o.resource, o.key.Namespace}] == nil) {
		return
	}
	first := len(t.unseen) == 0
	t.unseen[o] = true
	ctx := t.ctx
	if !first || ctx == nil || ctx.Err() != nil {
		return
	}
	t.running.Go(func() {
		timer := t.c.Clock.NewTimer(renewAfter)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C():
			t.renewAll() //nolint:contextcheck // watches live as long as the tracker
		}
	})
}

// renewAll restarts the watches that have not shown all of their objects.
func (t *Tracker) renewAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for o := range t.unseen {
		for _, s := range []scope{{resource: o.resource}, {o.resource, o.key.Namespace}} {
			if w := t.watches[s]; w != nil {
				w.stop()
				delete(t.watches, s)
			}
		}
	}
	clear(t.unseen)
	t.adjust()
}

// adjust starts the watches that are needed and stops the others.
func (t *Tracker) adjust() {
	if t.ctx == nil || t.ctx.Err() != nil {
		return
	}
	needed := t.objects.scopes(t.wide)
	for s, w := range t.watches {
		if !needed[s] {
			w.stop()
			delete(t.watches, s)
		}
	}
	for s := range needed {
		if t.watches[s] == nil {
			t.watches[s] = t.start(s)
		}
	}
	switch {
	case len(t.waiting) > 0 && t.definitions == nil:
		t.definitions = t.startDefinitions()
	case len(t.waiting) == 0 && t.definitions != nil:
		t.definitions.stop()
		t.definitions = nil
	}
}

// changed wakes the works that declare an object.
func (t *Tracker) changed(resource schema.GroupVersionResource, key reconcile.Key) {
	t.mu.Lock()
	holders := t.objects.works(resource, key)
	t.mu.Unlock()
	for _, h := range holders {
		t.c.Wake(h.work)
	}
}

// worksIn returns the works with objects in a scope.
func (t *Tracker) worksIn(s scope) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.objects.worksIn(s)
}

func (t *Tracker) wakeAll(works map[string]bool) {
	for work := range works {
		t.c.Wake(work)
	}
}

// wakeBlind wakes the works of resources that may not be watched.
func (t *Tracker) wakeBlind() {
	t.mu.Lock()
	var blind []scope
	for s, w := range t.watches {
		if w.failing() {
			blind = append(blind, s)
		}
	}
	t.mu.Unlock()
	for _, s := range blind {
		t.wakeAll(t.worksIn(s))
	}
}

// interested reports whether a work declares the object.
func (t *Tracker) interested(resource schema.GroupVersionResource, key reconcile.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.objects.works(resource, key)) > 0
}
