// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// entry is what is kept of a registration between passes.
type entry struct {
	// answers watches the request, namespaces the namespace, while they are
	// waited for.
	answers    *request.Watcher
	namespaces *watch.One[struct{}]
	// keptAt is when the credential was kept, waits since when something is
	// waited for.
	keptAt, waits time.Time
	addOn         string
	// asked is the request that was created.
	asked request.Asked
	// behind counts the passes in a row whose caches were behind.
	behind int
}

func (c *Controller) slotOf(t Target) slot {
	return slot{c.place(t.Hosted), reconcile.Key{Namespace: t.Namespace, Name: t.Name}}
}

// entry returns what is kept of the registration, at first nothing.
func (c *Controller) entry(s slot) *entry {
	e := c.entries[s]
	if e == nil {
		e = &entry{}
		c.entries[s] = e
	}
	return e
}

// attend makes an entry ready for an add-on.
func (c *Controller) attend(ctx context.Context, w Want) *entry {
	at := c.slotOf(w.Target)
	if e := c.entries[at]; e != nil && e.addOn != w.AddOn {
		c.leave(at)
	}
	e := c.entry(at)
	if e.answers == nil {
		log, wake := logr.FromContextOrDiscard(ctx), func() { c.wake(e.addOn) }
		e.addOn = w.AddOn
		e.answers = request.NewWatcher(wake, log)
		e.namespaces = watch.NewOne(watch.OneOptions[struct{}]{
			Resource: namespacesResource, OnChange: wake, Log: log,
			Keep: func(u *unstructured.Unstructured) (struct{}, bool) {
				return struct{}{}, u.GetDeletionTimestamp() == nil
			},
		})
	}
	return e
}

// leave forgets a registration.
func (c *Controller) leave(s slot) {
	if e := c.entries[s]; e != nil && e.answers != nil {
		e.answers.Close()
		e.namespaces.Close()
	}
	delete(c.entries, s)
}

// gather reads what is known of a registration, and watches what it waits for.
func (c *Controller) gather(ctx context.Context, a *addonv1alpha1.ManagedClusterAddOn, w Want) State {
	s := State{Now: c.config.Clock.Now(), Want: w, Deleting: a.DeletionTimestamp != nil}
	if w.Problem != "" {
		return s
	}
	e, at := c.attend(ctx, w), c.slotOf(w.Target)
	s.Digest, s.KeptAt = w.Digest(), e.keptAt
	if held, ok := at.place.Secrets.Get(at.key); ok && held.AddOn == w.AddOn {
		if held.Pending != nil {
			// Ours, and somebody changed its labels: it goes.
			held.Digest = ""
		}
		s.Held = &held
	}
	s.Pending = c.pendingOf(w)
	if s.Pending != nil {
		s.Asked = e.asked.When(s.Pending.Pending.Request)
	}
	if w.KubeClient() {
		s.Kubeconfig = textDigest(c.kubeconfigs[w.Driver])
	}
	if w.Token() {
		s.Infrastructure, s.Waiting = infrastructureOf(a)
	}
	s.Answer = e.answers.Look(ctx, c.config.Hub, s.watched())
	s.Namespace = e.presence(ctx, s, at)
	return s
}

// presence tells whether the namespace for a new secret is there. It is watched
// only while there is something to put into it.
func (e *entry) presence(ctx context.Context, s State, at slot) Presence {
	issued := len(s.Answer.Certificate) > 0 || (s.current() && len(s.Pending.Pending.Certificate) > 0)
	if s.Held != nil || (!issued && (!s.Want.Token() || s.Waiting != "")) {
		e.namespaces.Close()
		return Unknown
	}
	switch seen := e.namespaces.Look(ctx, at.place.Client, reconcile.Key{Name: s.Want.Namespace}); {
	case seen.Found:
		return Present
	case seen.Known:
		return Missing
	}
	return Unknown
}

// pendingOf is the secret of the request for a registration; nil without one.
func (c *Controller) pendingOf(w Want) *Secret {
	p, ok := c.config.Management.Secrets.Get(reconcile.Key{Namespace: c.config.Namespace, Name: w.pendingName()})
	if !ok || p.Pending == nil || p.AddOn != w.AddOn {
		return nil
	}
	return &p
}

// allot gives each contested secret to one add-on: to the one that has it, else
// to the first by name. The others are told.
func (c *Controller) allot(addOn string, wants []Want) []Want {
	own, _ := c.config.AddOns.Get(reconcile.Key{Namespace: c.config.Cluster, Name: addOn})
	contested := surplus(own, c.config.AddOns.List())
	for i := range wants {
		if contested {
			wants[i].Problem = tooMany
		}
		w := &wants[i]
		if w.Problem != "" {
			continue
		}
		at := c.slotOf(w.Target)
		held, _ := at.place.Secrets.Get(at.key)
		for _, b := range c.config.AddOns.List() {
			if b == nil || b.Name == w.AddOn || !c.claims(b, at) || held.AddOn == w.AddOn || (held.AddOn != b.Name && b.Name > w.AddOn) {
				continue
			}
			w.Problem, contested = fmt.Sprintf("secret %s/%s is that of add-on %s", w.Namespace, w.Name, b.Name), true
		}
	}
	c.contend(addOn, contested)
	return wants
}

// tooMany is told of the add-ons beyond maxAddOns.
var tooMany = fmt.Sprintf("the cluster has more than %d add-ons with registrations: the oldest are served, this one when some are gone", maxAddOns)

// surplus tells whether so many older add-ons ask for credentials that this one
// is not served: each costs memory and watches.
func surplus(own *addonv1alpha1.ManagedClusterAddOn, all []*addonv1alpha1.ManagedClusterAddOn) bool {
	if own == nil {
		return false
	}
	older := 0
	for _, b := range all {
		if b != nil && len(b.Status.Registrations) > 0 &&
			cmp.Or(b.CreationTimestamp.Compare(own.CreationTimestamp.Time), strings.Compare(b.Name, own.Name)) < 0 {
			older++
		}
	}
	return older >= maxAddOns
}

// contend remembers whether an add-on waits for a secret of another one.
func (c *Controller) contend(addOn string, contested bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.contested, addOn)
	if contested {
		c.contested[addOn] = true
	}
}

// claims tells whether an add-on keeps a credential there.
func (c *Controller) claims(a *addonv1alpha1.ManagedClusterAddOn, at slot) bool {
	for _, t := range targetsOf(a) {
		if c.slotOf(t) == at {
			return true
		}
	}
	return false
}

func refused(wants []Want) bool {
	for _, w := range wants {
		if w.Problem != "" {
			return true
		}
	}
	return false
}

// same tells whether preparing an add-on changed nothing.
func same(a, b *addonv1alpha1.ManagedClusterAddOn) bool {
	return a.Status.KubeClientDriver == b.Status.KubeClientDriver && reflect.DeepEqual(a.Status.Registrations, b.Status.Registrations)
}
