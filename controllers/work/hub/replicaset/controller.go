// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Name is the loop's id; the field manager of what it applies is derived from it.
const (
	Name         = "work.replicaset"
	fieldManager = "ocm." + Name
)

const workers = 4

// settle is how long status changes of ManifestWorks are gathered before they are
// summarized: one status write for what many clusters report at once.
const settle = 500 * time.Millisecond

// gathered is how long the decisions of a placement are gathered: they arrive in pieces,
// and only all of them show how many clusters left at once.
const gathered = 200 * time.Millisecond

var worksResource = workv1.GroupVersion.WithResource("manifestworks")

// Config of the loop.
type Config struct {
	// Client writes.
	Client dynamic.Interface
	// Clock tells the time of conditions and rollouts.
	Clock clock.PassiveClock
}

// Controller is the loop. Its keys are replica sets.
type Controller struct {
	client   dynamic.Interface
	reader   manager.Reader
	clock    clock.PassiveClock
	exec     *reconcile.Executor
	queue    *reconcile.Queue
	children *children
	users    users
	taken    taken
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	controller := &Controller{
		client: c.Client,
		reader: m.Reader(),
		clock:  c.Clock,
		exec:   reconcile.NewExecutor(c.Client, Name, c.Clock),
		queue:  reconcile.NewQueue(Name),
	}
	controller.children = newChildren(c.Client, func(set reconcile.Key) { controller.queue.AddAfter(set, settle) })
	m.AddTask(controller.children.works.Run)
	manager.Keep(m, &clusterv1.ManagedCluster{})
	manager.Watch(m, &workv1alpha1.ManifestWorkReplicaSet{}, func(old, current *workv1alpha1.ManifestWorkReplicaSet) {
		controller.users.changed(old, current)
		if current != nil || controller.taken.gone(old, c.Clock.Now()) {
			controller.queue.Add(reconcile.KeyOf(either(old, current)))
		}
	})
	selected := func(namespace, placement string) {
		for _, set := range controller.users.of(reconcile.Key{Namespace: namespace, Name: placement}) {
			controller.queue.AddAfter(set, gathered)
		}
	}
	manager.Watch(m, &clusterv1beta1.Placement{}, func(old, current *clusterv1beta1.Placement) {
		if o := either(old, current); old == nil || current == nil {
			selected(o.Namespace, o.Name)
		}
	})
	manager.Watch(m, &clusterv1beta1.PlacementDecision{}, func(old, current *clusterv1beta1.PlacementDecision) {
		o := either(old, current)
		selected(o.Namespace, o.Labels[clusterv1beta1.LabelPlacement])
	})
	each := manager.For(m.Reader(), controller.Reconcile, nil)
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		if err := controller.clearVanished(ctx, key); err != nil {
			return reconcile.Result{}, err
		}
		return each(ctx, key)
	}}, controller.queue)
}

// either returns the current object, or the old one if it is gone.
func either[T comparable](old, current T) T {
	var none T
	if current == none {
		return old
	}
	return current
}

// Reconcile brings one replica set closer to its spec.
func (c *Controller) Reconcile(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) (reconcile.Result, error) {
	if err := c.children.works.WaitSynced(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if isNew(set) {
		c.taken.note(set.UID, c.clock.Now())
	}
	return reconcile.Run(ctx, c.exec, set, c.gather, Decide)
}

// gather reads placements, decisions and ManifestWorks from the cache.
func (c *Controller) gather(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) (State, error) {
	s := State{Set: set, Now: c.clock.Now()}
	template, err := hashOf(set.Spec.ManifestWorkTemplate)
	if err != nil {
		return s, err
	}
	key := reconcile.KeyOf(set)
	s.Children = c.children.of(key, template)
	if set.DeletionTimestamp != nil {
		if len(s.Children) == 0 || set.Spec.CascadeDeletionPolicy != workv1alpha1.CascadeDeletionPolicyForeground {
			// The set may be deleted now: a work that was written a moment ago must not
			// outlive it.
			s.Children, err = c.live(ctx, key)
		}
		return s, err
	}
	for _, ref := range set.Spec.PlacementRefs {
		if slices.ContainsFunc(s.Placements, func(p Placement) bool { return p.Name == ref.Name }) {
			continue
		}
		p, err := c.placement(ctx, set.Namespace, ref)
		if err != nil {
			return s, err
		}
		s.Placements = append(s.Placements, p)
	}
	s.Leaving, err = c.leaving(ctx, s)
	return s, err
}

// pageSize of live lists; each work comes with its manifests.
const pageSize = 100

// live lists the works of a replica set from the API server.
func (c *Controller) live(ctx context.Context, set reconcile.Key) (out []Child, err error) {
	if len(validation.IsValidLabelValue(label(set))) > 0 {
		return nil, nil // no work can carry its label
	}
	options := metav1.ListOptions{LabelSelector: workv1alpha1.LabelManifestWorkReplicaSet + "=" + label(set), Limit: pageSize}
	for u, err := range typed.All(ctx, c.client.Resource(worksResource), options) {
		if err != nil {
			return nil, fmt.Errorf("listing the manifestworks of %s: %w", set, err)
		}
		out = append(out, Child{Cluster: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), Deleting: u.GetDeletionTimestamp() != nil})
	}
	return out, nil
}

// leaving returns the selected clusters without a work that are being deleted: a work
// created for one of them now would be applied and removed again, together with objects
// that were meant to stay there.
func (c *Controller) leaving(ctx context.Context, s State) (map[string]bool, error) {
	have := map[string]bool{}
	for _, child := range s.Children {
		have[child.Cluster] = true
	}
	out := map[string]bool{}
	for _, p := range s.Placements {
		for _, g := range p.Groups {
			for _, name := range g.Clusters {
				if have[name] {
					continue
				}
				have[name] = true
				mc := &clusterv1.ManagedCluster{}
				err := c.reader.Get(ctx, reconcile.Key{Name: name}, mc)
				if reconcile.IgnoreNotFound(err) != nil {
					return nil, fmt.Errorf("reading managedcluster %s: %w", name, err)
				}
				if mc.DeletionTimestamp != nil {
					out[name] = true
				}
			}
		}
	}
	return out, nil
}

// placement reads one placement with its decisions.
func (c *Controller) placement(ctx context.Context, namespace string, ref workv1alpha1.LocalPlacementReference) (Placement, error) {
	p := Placement{Name: ref.Name}
	err := c.reader.Get(ctx, reconcile.Key{Namespace: namespace, Name: ref.Name}, &clusterv1beta1.Placement{})
	if apierrors.IsNotFound(err) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("reading placement %s: %w", ref.Name, err)
	}
	p.Found = true
	if p.Strategy, err = rollout.Parse(ref.RolloutStrategy); err != nil {
		p.Invalid = fmt.Errorf("rolloutStrategy.%w", err)
		return p, nil
	}
	list := &clusterv1beta1.PlacementDecisionList{}
	own := manager.WithLabels(map[string]string{clusterv1beta1.LabelPlacement: ref.Name})
	if err := c.reader.List(ctx, list, manager.InNamespace(namespace), own, manager.NotCopied); err != nil {
		return p, fmt.Errorf("listing the decisions of placement %s: %w", ref.Name, err)
	}
	decisions := make([]*clusterv1beta1.PlacementDecision, 0, len(list.Items))
	for i := range list.Items {
		decisions = append(decisions, &list.Items[i])
	}
	p.Decided = len(decisions) > 0
	p.Groups, p.Invalid = rollout.Groups(decisions)
	return p, nil
}
