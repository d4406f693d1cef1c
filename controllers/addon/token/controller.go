// SPDX-License-Identifier: Apache-2.0

package token

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	hubconfig "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Name is the id of the loop.
const Name = "addon.token"

const workers = 2

// Config configures the loop.
type Config struct {
	// Client reads ServiceAccounts, roles and bindings, Manager writes them.
	Client, Manager dynamic.Interface
	// Clock is the time source for conditions.
	Clock clock.PassiveClock
	// Instances is the index of the add-on loops.
	Instances *instance.Index
	// OnGrant registers a function that is called when a right may have been granted.
	OnGrant func(func())
}

// Controller is the loop. Its keys are the keys of ManagedClusterAddOns.
type Controller struct {
	Config
	reader                    manager.Reader
	exec                      *reconcile.Executor
	accounts, roles, bindings *parts
	refused                   *reconcile.Refusals
}

// Register adds the loop to m.
func Register(m *manager.Manager, c Config) {
	queue, using := reconcile.NewQueue(Name), newUsers()
	controller := &Controller{
		Config: c, reader: m.Reader(), exec: reconcile.NewExecutor(c.Manager, Name, c.Clock), refused: reconcile.NewRefusals(queue),
		accounts: newParts(c.Client, corev1.SchemeGroupVersion.WithResource("serviceaccounts"), registration.ReadTokenAccount, queue.Add),
		roles:    newParts(c.Client, rbacv1.SchemeGroupVersion.WithResource("roles"), registration.ReadTokenRole, queue.Add),
		bindings: newParts(c.Client, rbacv1.SchemeGroupVersion.WithResource("rolebindings"), registration.ReadTokenBinding, queue.Add),
	}
	m.AddTask(controller.accounts.Run)
	m.AddTask(controller.roles.Run)
	m.AddTask(controller.bindings.Run)
	c.Instances.OnInstance(func(key reconcile.Key) {
		a, there := c.Instances.Get(key)
		using.record(key, there && a.Token)
		queue.Add(key)
	})
	c.OnGrant(controller.refused.Again)
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		if accepted(old) == accepted(current) {
			return
		}
		for _, key := range using.of(cmp.Or(current, old).Name) {
			queue.Add(key)
		}
	})
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: controller.Reconcile}, queue)
}

func accepted(mc *clusterv1.ManagedCluster) bool { return mc != nil && mc.Spec.HubAcceptsClient }

// Reconcile creates, updates or removes what the token driver needs for one add-on on one
// cluster.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	for _, wait := range []func(context.Context) error{c.Instances.WaitInstances, c.accounts.WaitSynced, c.roles.WaitSynced, c.bindings.WaitSynced} {
		if err := wait(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	a, there := c.Instances.Get(key)
	result, err := reconcile.Run(ctx, c.exec, object(key, a), func(ctx context.Context, o *addonv1alpha1.ManagedClusterAddOn) (registration.TokenState, error) {
		return c.gather(ctx, o, there)
	}, registration.DecideToken)
	c.refused.Note(key, apierrors.IsForbidden(err))
	return result, err
}

// object returns the part of an instance in the index that the decision reads.
func object(key reconcile.Key, a instance.AddOn) *addonv1alpha1.ManagedClusterAddOn {
	out := &addonv1alpha1.ManagedClusterAddOn{
		TypeMeta:   metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn"},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: a.UID, ResourceVersion: a.Version, Generation: a.Generation},
	}
	out.Status.Conditions = a.Conditions
	if a.Deleting {
		out.DeletionTimestamp = &metav1.Time{}
	}
	if a.Token {
		out.Status.KubeClientDriver = addonv1alpha1.DriverTypeToken
		out.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: addonv1alpha1.KubeAPIServerSigner}}
	}
	return out
}

// gather reads from the caches. Only before an object is created does it check live whether
// one without the mark has the name.
func (c *Controller) gather(ctx context.Context, o *addonv1alpha1.ManagedClusterAddOn, there bool) (registration.TokenState, error) {
	account, role := registration.TokenNames(o.Name)
	s := registration.TokenState{
		Account: c.accounts.known(o.Namespace, account), Role: c.roles.known(o.Namespace, role), Binding: c.bindings.known(o.Namespace, role),
		Allow: hubconfig.AllowTokenDriver, Now: c.Clock.Now(),
	}
	if !there {
		return s, nil
	}
	s.AddOn = o
	if !registration.HasToken(o) {
		return s, nil
	}
	mc := &clusterv1.ManagedCluster{}
	switch err := c.reader.Get(ctx, reconcile.Key{Name: o.Namespace}, mc); {
	case err == nil:
		s.Cluster = mc
	case !apierrors.IsNotFound(err):
		return s, fmt.Errorf("reading managedcluster %s: %w", o.Namespace, err)
	}
	if !accepted(s.Cluster) || o.DeletionTimestamp != nil {
		return s, nil
	}
	for _, p := range []struct {
		part *(*registration.TokenPart)
		of   *parts
		name string
	}{{&s.Account, c.accounts, account}, {&s.Role, c.roles, role}, {&s.Binding, c.bindings, role}} {
		if *p.part != nil {
			continue
		}
		var err error
		if *p.part, err = p.of.live(ctx, o.Namespace, p.name); err != nil {
			return s, err
		}
	}
	return s, nil
}
