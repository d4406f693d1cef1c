// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// answers watches the request, and namespaces the namespace, while they are awaited.
	answers    *request.Watcher
	namespaces *watch.One[struct{}]
	// keptAt is when the credential was stored, waits when the current wait began.
	keptAt, waits time.Time
	addOn         string
	// asked is the request created last.
	asked request.Asked
	// behind counts consecutive passes with stale caches.
	behind int
}

func (c *Controller) slotOf(t Target) slot {
	return slot{c.place(t.Hosted), reconcile.Key{Namespace: t.Namespace, Name: t.Name}}
}

// pendingSlot is where the request for a registration is kept.
func (c *Controller) pendingSlot(w Want) slot {
	return slot{c.config.Management, reconcile.Key{Namespace: c.config.Namespace, Name: w.pendingName()}}
}

// entry returns the entry of a registration, creating it if necessary.
func (c *Controller) entry(ctx context.Context, w Want) *entry {
	at := c.slotOf(w.Target)
	if e := c.entries[at]; e != nil {
		if e.addOn == w.AddOn {
			return e
		}
		c.dropEntry(at)
	}
	log, wake := logr.FromContextOrDiscard(ctx), func() { c.wake(w.AddOn) }
	e := &entry{
		addOn: w.AddOn, answers: request.NewWatcher(wake, log),
		namespaces: watch.NewOne(watch.OneOptions[struct{}]{
			Resource: namespacesResource, OnChange: wake, Log: log,
			Keep: func(u *unstructured.Unstructured) (struct{}, bool) {
				return struct{}{}, u.GetDeletionTimestamp() == nil
			},
		}),
	}
	c.entries[at] = e
	return e
}

// dropEntry drops a registration.
func (c *Controller) dropEntry(s slot) {
	c.entries[s].answers.Close()
	c.entries[s].namespaces.Close()
	delete(c.entries, s)
}

// gather reads what is known of a registration, and watches what it waits for.
func (c *Controller) gather(ctx context.Context, a *addonv1alpha1.ManagedClusterAddOn, w Want) State {
	s := State{Now: c.config.Clock.Now(), Want: w, Deleting: a.DeletionTimestamp != nil}
	if w.Problem != "" {
		return s
	}
	e, at := c.entry(ctx, w), c.slotOf(w.Target)
	s.Digest, s.KeptAt = w.Digest(), e.keptAt
	if held, ok := at.place.Secrets.Get(at.key); ok && held.AddOn == w.AddOn {
		if held.Pending != nil {
			// It is this agent's, but its labels were changed: it is deleted.
			held.Digest = ""
		}
		s.Held = &held
	}
	s.Pending, s.Stored = c.pendingOf(w)
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

// presence reports whether the namespace for a new secret exists. It is watched only while
// there is something to put into it.
func (e *entry) presence(ctx context.Context, s State, at slot) Presence {
	issued := len(s.Answer.Certificate) > 0 || (s.isCurrent() && len(s.Pending.Pending.Certificate) > 0)
	if s.Held != nil || (!issued && (!s.Want.Token() || s.Waiting != "")) {
		e.namespaces.Close()
		return Unknown
	}
	switch seen := e.namespaces.Look(ctx, at.place.Client, reconcile.Key{Name: s.Want.Namespace}); {
	case seen.Found:
		return Present
	case seen.Known:
		return Missing
	case apierrors.IsForbidden(seen.Err):
		return Blind
	}
	return Unknown
}

// pendingOf returns the secret of the request for a registration, and whatever this agent has in
// its place, which is another one if its labels were changed; nil if there is none.
func (c *Controller) pendingOf(w Want) (pending, stored *Secret) {
	at := c.pendingSlot(w)
	p, ok := at.place.Secrets.Get(at.key)
	switch {
	case !ok:
		return nil, nil
	case p.Pending == nil || p.AddOn != w.AddOn:
		return nil, &p
	}
	return &p, &p
}

// assignSecrets assigns each contested secret to one add-on: to the one that has it, else to the
// first by name. The others get a Problem.
func (c *Controller) assignSecrets(addOn string, wants []Want) []Want {
	own, _ := c.config.AddOns.Get(reconcile.Key{Namespace: c.config.Cluster, Name: addOn})
	contested := isSurplus(own, c.config.AddOns.List())
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
			if b == nil || b.Name == w.AddOn || !c.claimsSlot(b, at) || held.AddOn == w.AddOn || (held.AddOn != b.Name && b.Name > w.AddOn) {
				continue
			}
			w.Problem, contested = fmt.Sprintf("secret %s/%s belongs to add-on %s", w.Namespace, w.Name, b.Name), true
		}
	}
	c.setContested(addOn, contested)
	return wants
}

// tooMany is the message for add-ons beyond maxAddOns.
var tooMany = fmt.Sprintf("the cluster has more than %d add-ons with registrations: the oldest are served; this one is served once some are gone", maxAddOns)

// isSurplus reports whether so many older add-ons request credentials that this one is not
// served: each costs memory and watches.
func isSurplus(own *addonv1alpha1.ManagedClusterAddOn, all []*addonv1alpha1.ManagedClusterAddOn) bool {
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

// setContested records whether an add-on waits for a secret of another one.
func (c *Controller) setContested(addOn string, contested bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.contested, addOn)
	if contested {
		c.contested[addOn] = true
	}
}

// claimsSlot reports whether an add-on keeps a credential in that slot.
func (c *Controller) claimsSlot(a *addonv1alpha1.ManagedClusterAddOn, at slot) bool {
	return slices.ContainsFunc(targetsOf(a), func(t Target) bool { return c.slotOf(t) == at })
}
