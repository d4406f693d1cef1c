// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Name identifies this loop.
const Name = "registration.namespaces"

// managerHash is how many characters of the hub's hash are in the name of the field manager.
// Each hub has its own field manager, or one hub's apply would remove the other's label.
const managerHash = 16

var resource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Config configures a Controller; all fields are required.
type Config struct {
	// Hub is the client for the hub with the agent's identity, Spoke the one for the managed
	// cluster.
	Hub, Spoke dynamic.Interface
	// Cluster is the name of the ManagedCluster, HubHash the hex SHA-256 of the hub's server
	// URL.
	Cluster, HubHash string
	// Clusters holds only that ManagedCluster. Its owner runs it, after New.
	Clusters *watch.Collection[*clusterv1.ManagedCluster]
	Clock    clock.PassiveClock
	Log      logr.Logger
}

// Controller is the loop. Make it with New and run it once, along with Present.
type Controller struct {
	// Present are the namespaces with the label of this hub.
	Present *watch.Collection[Namespace]

	config  Config
	queue   *reconcile.Queue
	execute *reconcile.Executor
	manager string
}

// New prepares the loop.
func New(o Config) *Controller {
	key := labelKey(o.HubHash)
	c := &Controller{
		config: o, queue: reconcile.NewQueue(Name), execute: reconcile.NewExecutor(o.Hub, Name, o.Clock),
		manager: "ocm." + Name + "." + o.HubHash[:min(len(o.HubHash), managerHash)],
	}
	c.Present = watch.New(watch.Options[Namespace]{
		Client: o.Spoke, Resource: resource, LabelSelector: key, Log: o.Log,
		Keep: func(u *unstructured.Unstructured) (Namespace, bool) { return namespaceOf(u, key), true },
		Same: func(before, now Namespace) bool { return before == now },
	})
	wake := func(reconcile.Key) { c.queue.Add(reconcile.Key{Name: o.Cluster}) }
	o.Clusters.OnChange(wake)
	c.Present.OnChange(wake)
	return c
}

func namespaceOf(u *unstructured.Unstructured, key string) Namespace {
	return Namespace{Name: u.GetName(), Label: u.GetLabels()[key], Terminating: u.GetDeletionTimestamp() != nil}
}

// Run follows the hub until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	// Decide nothing before both lists are complete: only then does absence mean something.
	if c.Present.WaitSynced(ctx) != nil || c.config.Clusters.WaitSynced(ctx) != nil {
		c.queue.Close()
		return nil //nolint:nilerr // the end of ctx is the orderly end
	}
	c.queue.Add(reconcile.Key{Name: c.config.Cluster})
	return reconcile.Loop{Name: Name, Reconcile: c.Reconcile}.Run(ctx, c.queue)
}

// Reconcile brings the namespaces requested by the cluster sets up to date.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	s := State{Now: c.config.Clock.Now(), Present: map[string]Namespace{}, Failed: map[string]string{}}
	for _, n := range c.Present.List() {
		s.Present[n.Name] = n
	}
	s.Cluster, _ = c.config.Clusters.Get(key)
	var failed []error
	for _, label := range labelsToWrite(s) {
		n, err := c.applyLabel(ctx, label)
		if err != nil {
			s.Failed[label.Namespace] = err.Error()
			failed = append(failed, fmt.Errorf("labelling namespace %s: %w", label.Namespace, err))
			continue
		}
		s.Present[label.Namespace] = n
	}
	if s.Cluster == nil {
		return reconcile.Result{}, errors.Join(failed...)
	}
	result, err := c.execute.Execute(ctx, s.Cluster, Decide(s))
	return result, errors.Join(append(failed, err)...)
}

// applyLabel writes a label, and creates the namespace if it is wanted and does not exist.
func (c *Controller) applyLabel(ctx context.Context, l Label) (Namespace, error) {
	key := labelKey(c.config.HubHash)
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": l.Namespace, "labels": map[string]any{key: l.Value}},
	}}
	if l.Value == unwanted {
		// A namespace deleted in the meantime must not be created just to be labelled
		// unwanted.
		live, err := c.config.Spoke.Resource(resource).Get(ctx, l.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return Namespace{}, nil
		}
		if err != nil {
			return Namespace{}, err
		}
		u.SetUID(live.GetUID())
	}
	live, err := c.config.Spoke.Resource(resource).Apply(ctx, l.Namespace, u, metav1.ApplyOptions{FieldManager: c.manager, Force: true})
	if err != nil {
		return Namespace{}, err
	}
	word := "Namespace is managed for a set"
	if l.Value == unwanted {
		word = "Namespace is no longer managed for a set"
	}
	logr.FromContextOrDiscard(ctx).Info(word, "namespace", l.Namespace, "cluster", c.config.Cluster)
	return namespaceOf(live, key), nil
}
