// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// renewAfter gathers objects for which a watch has to start anew: each start
// lists everything in its scope.
const renewAfter = time.Second

// PollEvery is how often works look at objects that may not be watched.
const PollEvery = time.Minute

// Sight is what a Tracker knows of an object.
type Sight int

const (
	// Unknown: the watch has not listed yet; it will wake the work when it has.
	Unknown Sight = iota
	// Present: the object is as Look says.
	Present
	// Absent: the watch shows no such object.
	Absent
	// Blind: the object may not be watched and has to be looked at.
	Blind
)

// Config is what a Tracker works with.
type Config struct {
	// Metadata reads metadata only (see MetadataOnly).
	Metadata dynamic.Interface
	// Clock drives the one-minute timer of objects that may not be watched.
	Clock clock.WithTicker
	// Log tells which resources may not be watched.
	Log logr.Logger
	// Wake is called with the works that declare a changed object.
	Wake func(work string)
	// Defined is called when a definition of a kind came or changed, before the
	// works that wait for a kind are woken.
	Defined func()
	// OnBlind is called once for each resource that may not be watched, with a
	// work that needs it.
	OnBlind func(work string, resource schema.GroupVersionResource, namespace string, err error)
}

// Object is one object that a work declares.
type Object struct {
	// Resource, Namespace and Name say where it lives.
	Resource        schema.GroupVersionResource
	Namespace, Name string
	// Marked is set when the object carries an owner reference of a work, so
	// that a running watch recognises it without being told of it.
	Marked bool
}

// Tracker watches what works declare. Track may be called at any time.
type Tracker struct {
	c Config

	mu sync.Mutex
	// ctx is that of Run; watches start once it is set.
	ctx     context.Context
	running sync.WaitGroup
	objects map[object]map[string]bool
	works   map[string]map[object]bool
	// waiting are the works that declare a kind which does not exist.
	waiting map[string]bool
	watches map[scope]*watcher
	// wide are the resources that may not be watched in the whole cluster.
	wide        map[schema.GroupVersionResource]bool
	definitions *watcher
	// unseen are objects whose watch has to start anew before it can show them;
	// that is set off by the first of them.
	unseen map[object]bool
}

// New makes a Tracker that watches nothing yet.
func New(c Config) *Tracker {
	return &Tracker{
		c: c, objects: map[object]map[string]bool{}, works: map[string]map[object]bool{},
		waiting: map[string]bool{}, watches: map[scope]*watcher{}, wide: map[schema.GroupVersionResource]bool{},
		unseen: map[object]bool{},
	}
}

// Run holds the watches until ctx ends.
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
			t.running.Wait()
			return nil
		case <-ticker.C():
			t.wakeBlind()
		}
	}
}

// Track replaces what a work declares; nothing at all forgets the work.
func (t *Tracker) Track(work string, objects []Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(map[object]bool, len(objects))
	for _, o := range objects {
		key := object{o.Resource, reconcile.Key{Namespace: o.Namespace, Name: o.Name}}
		next[key] = true
		if t.objects[key] == nil {
			t.objects[key] = map[string]bool{}
			t.renew(key, o.Marked)
		}
		t.objects[key][work] = true
	}
	for o := range t.works[work] {
		if !next[o] {
			delete(t.objects[o], work)
			if len(t.objects[o]) == 0 {
				delete(t.objects, o)
			}
		}
	}
	if len(next) == 0 {
		delete(t.works, work)
	} else {
		t.works[work] = next
	}
	t.adjust()
}

// Wait notes whether a work waits for a kind that does not exist.
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

// Look is what is known of an object without a request.
func (t *Tracker) Look(resource schema.GroupVersionResource, namespace, name string) (apply.Seen, Sight) {
	key := reconcile.Key{Namespace: namespace, Name: name}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.watches[scope{resource: resource}]
	if w == nil {
		w = t.watches[scope{resource, namespace}]
	}
	if w == nil || t.unseen[object{resource, key}] {
		return apply.Seen{}, Unknown
	}
	return w.look(key)
}

// renew sees to it that a watch starts anew that may already have dropped the
// object as somebody else's: only objects with an owner reference of a work
// announce themselves. The caller holds the lock.
func (t *Tracker) renew(o object, marked bool) {
	if marked || (t.watches[scope{resource: o.resource}] == nil && t.watches[scope{o.resource, o.key.Namespace}] == nil) {
		return
	}
	first := len(t.unseen) == 0
	t.unseen[o] = true
	if !first || t.ctx.Err() != nil {
		return
	}
	t.running.Go(func() {
		timer := t.c.Clock.NewTimer(renewAfter)
		defer timer.Stop()
		select {
		case <-t.ctx.Done():
		case <-timer.C():
			t.renewAll()
		}
	})
}

// renewAll starts the watches anew that have not shown all of their objects.
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
	needed := scopes(t.objects, t.wide)
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
	t.wakeAll(t.worksOf(func(o object) bool { return o.resource == resource && o.key == key }, &object{resource, key}))
}

// listed wakes every work in a scope: an object that is missing from the list
// has no event of its own.
func (t *Tracker) listed(s scope) {
	t.wakeAll(t.worksOf(s.covers, nil))
}

// worksOf are the works of the objects that fit; one names the only one.
func (t *Tracker) worksOf(fits func(object) bool, one *object) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]bool{}
	if one != nil {
		for work := range t.objects[*one] {
			out[work] = true
		}
		return out
	}
	for o, works := range t.objects {
		if fits(o) {
			for work := range works {
				out[work] = true
			}
		}
	}
	return out
}

func (s scope) covers(o object) bool {
	return o.resource == s.resource && (s.namespace == "" || s.namespace == o.key.Namespace)
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
		t.listed(s)
	}
}

// interested tells whether a work declares the object.
func (t *Tracker) interested(o object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.objects[o]) > 0
}
