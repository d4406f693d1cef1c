// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/lease"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// loopName is the id of the agent's loop.
const loopName = name + ".copy"

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// agent copies ConfigMaps; the key of its queue is the name of one.
type agent struct {
	options
	managed dynamic.Interface
	// sources are on the hub, copies on the managed cluster.
	sources, copies *watch.Collection[*corev1.ConfigMap]
	// addOns holds the instance, false while it is being deleted.
	addOns *watch.Collection[bool]
	queue  *reconcile.Queue
}

// runAgent copies ConfigMaps and renews the lease until ctx ends.
func runAgent(ctx context.Context, o options) error {
	if err := errors.Join(required("hub-kubeconfig", o.hubKubeconfig), required("cluster-name", o.cluster), required("addon-namespace", o.namespace)); err != nil {
		return err
	}
	hub, err := connect(o.hubKubeconfig)
	if err != nil {
		return err
	}
	managed, err := connect(o.managedKubeconfig)
	if err != nil {
		return err
	}
	return newAgent(o, hub, managed, logr.FromContextOrDiscard(ctx)).run(ctx)
}

func newAgent(o options, hub, managed dynamic.Interface, log logr.Logger) *agent {
	a := &agent{options: o, managed: managed, queue: reconcile.NewQueue(loopName)}
	a.sources = watch.New(watch.Options[*corev1.ConfigMap]{Client: hub, Resource: configMaps, Namespace: o.cluster, Keep: keep, Log: log})
	a.copies = watch.New(watch.Options[*corev1.ConfigMap]{
		Client: managed, Resource: configMaps, Namespace: o.namespace, LabelSelector: labelSynced + "=" + o.addOn, Keep: keep, Log: log,
	})
	a.addOns = watch.New(watch.Options[bool]{
		Client: hub, Resource: addonv1alpha1.GroupVersion.WithResource("managedclusteraddons"), Namespace: o.cluster, FieldSelector: "metadata.name=" + o.addOn,
		Keep: func(u *unstructured.Unstructured) (bool, bool) { return u.GetDeletionTimestamp() == nil, true },
		Same: func(before, now bool) bool { return before == now }, Log: log,
	})
	one := func(key reconcile.Key) { a.queue.Add(reconcile.Key{Name: key.Name}) }
	a.sources.OnChange(one)
	a.copies.OnChange(one)
	a.addOns.OnChange(func(reconcile.Key) {
		for _, c := range a.sources.List() {
			a.queue.Add(reconcile.Key{Name: c.Name})
		}
	})
	return a
}

// keep decodes a ConfigMap, without its managed fields.
func keep(u *unstructured.Unstructured) (*corev1.ConfigMap, bool) {
	u.SetManagedFields(nil)
	c, err := typed.FromUnstructured[corev1.ConfigMap](u)
	return c, err == nil
}

// run starts the watches, the lease and the loop, and ends with all of them.
func (a *agent) run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for _, watching := range []func(context.Context) error{a.sources.Run, a.copies.Run, a.addOns.Run} {
		running.Go(func() { _ = watching(ctx) })
	}
	// Until all three have synced, missing and surplus copies are unknown.
	if errors.Join(a.sources.WaitSynced(ctx), a.copies.WaitSynced(ctx), a.addOns.WaitSynced(ctx)) != nil {
		return nil // the program ends
	}
	running.Go(func() {
		if err := lease.Run(ctx, a.lease()); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Lease is not renewed")
		}
	})
	return reconcile.Loop{Name: loopName, Reconcile: a.reconcile}.Run(ctx, a.queue)
}

// lease returns the options of the lease, which is renewed while the agent works.
func (a *agent) lease() lease.Options {
	return lease.Options{
		Client: a.managed, Namespace: a.namespace, AddOn: a.addOn, Clock: clock.RealClock{}, Random: rand.Float64,
		Checks: []lease.Check{a.works},
	}
}

// works returns why the agent copies nothing, or nil.
func (a *agent) works(context.Context) error {
	if !a.stays() {
		return errors.New("the add-on is being removed from the cluster")
	}
	return errors.Join(a.sources.Err(), a.copies.Err())
}

// stays returns false when the add-on is being removed, or its instance is gone.
func (a *agent) stays() bool {
	stays, _ := a.addOns.Get(reconcile.Key{Namespace: a.cluster, Name: a.addOn})
	return stays
}

// reconcile brings one copy to its desired state.
func (a *agent) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	s := state{namespace: a.namespace, addOn: a.addOn, stays: a.stays()}
	s.source, _ = a.sources.Get(reconcile.Key{Namespace: a.cluster, Name: key.Name})
	s.copy, _ = a.copies.Get(reconcile.Key{Namespace: a.namespace, Name: key.Name})
	return reconcile.Result{}, a.execute(ctx, decide(s))
}

// execute sends the one write of a plan.
func (a *agent) execute(ctx context.Context, p plan) error {
	client := a.managed.Resource(configMaps).Namespace(a.namespace)
	log := logr.FromContextOrDiscard(ctx)
	switch {
	case p.remove != nil:
		err := client.Delete(ctx, p.remove.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.remove.UID}})
		if err == nil {
			log.Info("Removed copy", "configmap", p.remove.Name)
		}
		return ignoreGone(err)
	case p.write != nil:
		u, err := typed.ToUnstructured(p.write)
		if err != nil {
			return err
		}
		if p.write.UID != "" {
			_, err = client.Update(ctx, u, metav1.UpdateOptions{})
		} else if _, err = client.Create(ctx, u, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
			log.Info("ConfigMap was not copied, because one with its name exists that is not a copy", "configmap", p.write.Name)
			return nil
		}
		if err == nil {
			log.Info("Copied ConfigMap", "configmap", p.write.Name)
		}
		return ignoreGone(err)
	}
	return nil
}

// ignoreGone ignores that an object is gone: the watch reports it, and the key is queued
// again.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
