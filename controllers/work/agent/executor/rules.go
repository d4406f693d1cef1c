// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// rbacResources are the watched resources.
var rbacResources = []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}

var rulesReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectrulesreviews"}

// pauses are the waiting times before rules are compared after an event: the first
// gathers events, the others allow for API servers that learn later of new rights.
var pauses = []time.Duration{250 * time.Millisecond, 2 * time.Second, 5 * time.Second}

// pollEvery is how often rules are compared where roles may not be watched.
const pollEvery = time.Minute

// scope is where an account has one set of rules: a namespace, or, if empty, the
// cluster-scoped resources.
type scope struct {
	account   Account
	namespace string
}

// asked returns the namespace whose rules are compared. Those of any namespace include
// the rules for cluster-scoped resources.
func (s scope) asked() string { return cmp.Or(s.namespace, s.account.Namespace) }

// rules is what is known of the rules of a scope.
type rules struct {
	// epoch is that of the last change, 0 until rules were first read.
	epoch uint64
	rules digest.Sum
	works map[string]bool
}

// roleWatch is the watch of one resource.
type roleWatch struct {
	seen *watch.Collection[struct{}]
	stop context.CancelFunc
}

// Track records the namespaces that a work's executor acts in, "" for cluster-scoped
// resources. The rules of a new scope are read before it returns, so that no later change
// is missed.
func (c *Checker) Track(ctx context.Context, work string, a Account, namespaces ...string) {
	var next []scope
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		next = append(next, scope{a, namespace})
	}
	for _, s := range c.replace(work, next) { //nolint:contextcheck // watches live as long as the checker, not as the pass that wants them
		c.compare(ctx, s)
	}
}

// Forget drops a work that has no executor or is gone.
func (c *Checker) Forget(work string) { c.replace(work, nil) }

// replace replaces the scopes of a work, and returns those that are new.
func (c *Checker) replace(work string, next []scope) (added []scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.works[work]
	if slices.Equal(before, next) {
		return nil
	}
	for _, s := range next {
		if c.scopes[s] == nil {
			c.scopes[s] = &rules{works: map[string]bool{}}
			added = append(added, s)
		}
		c.scopes[s].works[work] = true
	}
	for _, s := range before {
		if slices.Contains(next, s) {
			continue
		}
		if delete(c.scopes[s].works, work); len(c.scopes[s].works) == 0 {
			delete(c.scopes, s)
			delete(c.marked, s)
		}
	}
	if len(next) == 0 {
		delete(c.works, work)
	} else {
		c.works[work] = next
	}
	c.adjust()
	return added
}

// Epoch changes whenever the rights of the account in the namespace may have changed. A
// decision is valid while the epoch read before it stays the same.
func (c *Checker) Epoch(a Account, namespace string) uint64 {
	if a.IsAgent() {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.scopes[scope{a, namespace}]; r != nil {
		return r.epoch
	}
	return 0
}

// Run runs the watches until ctx ends.
func (c *Checker) Run(ctx context.Context) error {
	c.mu.Lock()
	c.ctx = ctx
	c.adjust() //nolint:contextcheck // watches live as long as the checker, not as the pass that wants them
	c.mu.Unlock()
	ticker := c.c.Clock.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			// A pass may be starting the watches right now: after this none starts any more.
			c.mu.Lock()
			c.ctx = nil
			c.mu.Unlock()
			c.running.Wait()
			return nil
		case <-c.news:
			c.compareMarked(ctx)
		case <-ticker.C():
			if c.isBlind() {
				for _, s := range c.allScopes() {
					c.compare(ctx, s)
				}
			}
		}
	}
}

// compareMarked compares the rules of the marked scopes after each pause. An event in
// between restarts the pauses, but not before the first comparison.
func (c *Checker) compareMarked(ctx context.Context) {
	for i := 0; i < len(pauses); i++ {
		timer := c.c.Clock.NewTimer(pauses[i])
		var news <-chan struct{}
		if i > 0 {
			news = c.news
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-news:
			timer.Stop()
			i = -1
			continue
		case <-timer.C():
		}
		last := i == len(pauses)-1
		for _, s := range c.takeMarked(last) {
			if !c.compare(ctx, s) && last {
				c.mark(func(marked scope) bool { return marked == s })
			}
		}
	}
}

// allScopes returns the scopes of all works.
func (c *Checker) allScopes() []scope {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.scopes))
}

// takeMarked returns the marked scopes; the last comparison unmarks them.
func (c *Checker) takeMarked(last bool) []scope {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Collect(maps.Keys(c.marked))
	if last {
		clear(c.marked)
	}
	return out
}

// compare reads the rules of a scope and wakes its works if the rules differ from the
// known ones. Rules that may not be read are treated as changed. False means that the API
// server did not answer and has to be asked again.
func (c *Checker) compare(ctx context.Context, s scope) bool {
	rules, err := c.rulesOf(ctx, s)
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		c.c.Log.V(1).Info("Rules of an executor cannot be read", "executor", s.account.String(), "namespace", s.asked(), "error", err.Error())
	}
	c.mu.Lock()
	r := c.scopes[s]
	silent := err != nil && !apierrors.IsForbidden(err)
	if r == nil || (r.epoch > 0 && (silent || (err == nil && r.rules == rules))) {
		c.mu.Unlock()
		return r == nil || !silent
	}
	c.epochs++
	r.epoch, r.rules = c.epochs, rules
	works := slices.Collect(maps.Keys(r.works))
	c.mu.Unlock()
	for _, work := range works {
		c.c.Wake(work)
	}
	return !silent
}

// rulesOf digests the rules of a scope, regardless of their order.
func (c *Checker) rulesOf(ctx context.Context, s scope) (sum digest.Sum, err error) {
	client, err := c.As(s.account)
	if err != nil {
		return sum, err
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	answer, err := client.Resource(rulesReviews).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": rulesReviews.GroupVersion().String(), "kind": "SelfSubjectRulesReview",
		"spec": map[string]any{"namespace": s.asked()},
	}}, metav1.CreateOptions{})
	if err != nil {
		return sum, fmt.Errorf("reading the rules of executor %s: %w", s.account, err)
	}
	list, _, err := unstructured.NestedSlice(answer.Object, "status", "resourceRules")
	if err != nil {
		return sum, fmt.Errorf("reading the rules of executor %s: %w", s.account, err)
	}
	lines := make([]string, 0, len(list))
	for _, rule := range list {
		line, _ := json.Marshal(rule) // it was decoded from JSON
		lines = append(lines, string(line))
	}
	slices.Sort(lines)
	return digest.OfParts(slices.Compact(lines)...), nil
}

// adjust watches roles and bindings while there is an executor. The caller holds the
// lock.
func (c *Checker) adjust() {
	switch {
	case c.ctx == nil || c.ctx.Err() != nil:
	case len(c.works) == 0:
		for _, w := range c.watches {
			w.stop()
		}
		c.watches = nil
	case c.watches == nil:
		for _, resource := range rbacResources {
			c.watches = append(c.watches, c.start(resource))
		}
	}
}

// start watches one resource. Only the names of its objects are kept.
func (c *Checker) start(resource string) *roleWatch {
	ctx, cancel := context.WithCancel(c.ctx)
	w := &roleWatch{stop: cancel, seen: watch.New(watch.Options[struct{}]{
		Client: c.c.Metadata, Resource: schema.GroupVersionResource{Group: groupRBAC, Version: "v1", Resource: resource}, Log: c.c.Log,
		Keep: func(*unstructured.Unstructured) (struct{}, bool) { return struct{}{}, true },
	})}
	w.seen.OnChange(func(k reconcile.Key) {
		c.mark(func(s scope) bool { return k.Namespace == "" || k.Namespace == s.asked() })
	})
	c.running.Go(func() { _ = w.seen.Run(ctx) })
	return w
}

// mark marks the scopes that an event can concern, to have their rules compared.
func (c *Checker) mark(concerned func(scope) bool) {
	c.mu.Lock()
	found := false
	for s := range c.scopes {
		if concerned(s) {
			c.marked[s], found = true, true
		}
	}
	c.mu.Unlock()
	if !found {
		return
	}
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// isBlind reports whether some of the roles and bindings may not be watched.
func (c *Checker) isBlind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.watches, func(w *roleWatch) bool { return apierrors.IsForbidden(w.seen.Err()) })
}
