// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Name identifies the loop about ManagedServiceAccounts, and rightsName that about the rights
// of agents.
const (
	Name       = "serviceaccount.life"
	rightsName = "serviceaccount.rights"
)

// workers is how many keys of each loop are worked on at a time.
const workers = 4

var (
	asked    = authenticationv1beta1.GroupVersion.WithResource("managedserviceaccounts")
	roles    = rbacv1.SchemeGroupVersion.WithResource("roles")
	bindings = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

// Config configures the loops.
type Config struct {
	// Client watches everything, and writes ManagedServiceAccounts.
	Client dynamic.Interface
	// Manager writes the rights of agents, as the add-on manager.
	Manager dynamic.Interface
	Clock   clock.PassiveClock
	// Lifetime deletes ManagedServiceAccounts at the end of spec.ttlSecondsAfterCreation.
	Lifetime bool
}

// Controller holds both loops.
type Controller struct {
	config         Config
	reader         manager.Reader
	exec, granting *reconcile.Executor
	lives, rights  *reconcile.Queue
	asked          *watch.Collection[*authenticationv1beta1.ManagedServiceAccount]
	roles          *watch.Collection[*rbacv1.Role]
	bindings       *watch.Collection[*rbacv1.RoleBinding]

	mu sync.Mutex
	// names are those of the ManagedServiceAccounts of each namespace.
	names map[string]map[string]bool
	// problems are why the agents of clusters have no rights.
	problems map[string]string
}

// Register adds the loops to m.
func Register(m *manager.Manager, c Config) {
	l := &Controller{
		config: c, reader: m.Reader(), exec: reconcile.NewExecutor(c.Client, Name, c.Clock), granting: reconcile.NewExecutor(c.Manager, rightsName, c.Clock),
		lives: reconcile.NewQueue(Name), rights: reconcile.NewQueue(rightsName),
		roles: byName[rbacv1.Role](c.Client, roles), bindings: byName[rbacv1.RoleBinding](c.Client, bindings),
		names: map[string]map[string]bool{}, problems: map[string]string{},
	}
	l.asked = watch.New(watch.Options[*authenticationv1beta1.ManagedServiceAccount]{
		Client: c.Client, Resource: asked, Keep: keep[authenticationv1beta1.ManagedServiceAccount],
	})
	l.asked.OnChange(l.changed)
	again := func(key reconcile.Key) { l.rights.Add(reconcile.Key{Name: key.Namespace}) }
	l.roles.OnChange(again)
	l.bindings.OnChange(again)
	manager.Watch(m, &addonhealth.AddOn{}, func(old, current *addonhealth.AddOn) {
		if a := cmp.Or(current, old); a.Name == authenticationv1beta1.AddOnName && (old == nil || current == nil || old.UID != current.UID) {
			l.rights.Add(reconcile.Key{Name: a.Namespace})
			l.wake(a.Namespace)
		}
	})
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		if old == nil || current == nil {
			l.wake(cmp.Or(current, old).Name)
		}
	})
	m.AddTask(l.asked.Run)
	m.AddTask(l.roles.Run)
	m.AddTask(l.bindings.Run)
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: l.reconcileLife}, l.lives)
	m.Add(reconcile.Loop{Name: rightsName, Workers: workers, Reconcile: l.reconcileRights}, l.rights)
}

// byName watches the objects with the name of an agent's Role in all namespaces.
func byName[T any](client dynamic.Interface, resource schema.GroupVersionResource) *watch.Collection[*T] {
	return watch.New(watch.Options[*T]{Client: client, Resource: resource, FieldSelector: "metadata.name=" + authenticationv1beta1.AgentRole, Keep: keep[T]})
}

// keep decodes an object, without its managed fields.
func keep[T any](u *unstructured.Unstructured) (*T, bool) {
	u.SetManagedFields(nil)
	out, err := typed.FromUnstructured[T](u)
	return out, err == nil
}

// changed follows a ManagedServiceAccount that came, changed or went.
func (c *Controller) changed(key reconcile.Key) {
	_, exists := c.asked.Get(key)
	c.mu.Lock()
	known := c.names[key.Namespace][key.Name]
	switch {
	case exists && c.names[key.Namespace] == nil:
		c.names[key.Namespace] = map[string]bool{key.Name: true}
	case exists:
		c.names[key.Namespace][key.Name] = true
	default:
		delete(c.names[key.Namespace], key.Name)
		if len(c.names[key.Namespace]) == 0 {
			delete(c.names, key.Namespace)
		}
	}
	c.mu.Unlock()
	c.lives.Add(key)
	if known != exists {
		c.rights.Add(reconcile.Key{Name: key.Namespace})
	}
}

// namesOf returns the names of the ManagedServiceAccounts of a namespace, sorted.
func (c *Controller) namesOf(namespace string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.names[namespace]))
}

// wake queues the ManagedServiceAccounts of a namespace.
func (c *Controller) wake(namespace string) {
	for _, name := range c.namesOf(namespace) {
		c.lives.Add(reconcile.Key{Namespace: namespace, Name: name})
	}
}

// reconcileLife ends a ManagedServiceAccount, or says what is wrong with it.
func (c *Controller) reconcileLife(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	a, ok := c.asked.Get(key)
	if !ok {
		return reconcile.Result{}, nil
	}
	cluster, err := hub.FindCluster(ctx, c.reader, key.Namespace, manager.NotCopied)
	if err != nil {
		return reconcile.Result{}, err
	}
	addOn, err := c.addOn(ctx, key.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	s := State{Now: c.config.Clock.Now(), Asked: a, Cluster: cluster != nil, AddOn: addOn != "", Lifetime: c.config.Lifetime}
	c.mu.Lock()
	s.Problem = c.problems[key.Namespace]
	c.mu.Unlock()
	return c.exec.Execute(ctx, a, Decide(s))
}

// addOn returns the UID of the add-on's instance on a cluster, or "".
func (c *Controller) addOn(ctx context.Context, cluster string) (types.UID, error) {
	key := reconcile.Key{Namespace: cluster, Name: authenticationv1beta1.AddOnName}
	a, err := hub.Find(ctx, c.reader, key, &addonhealth.AddOn{}, manager.NotCopied)
	if a == nil || err != nil {
		return "", err
	}
	return a.UID, nil
}

// reconcileRights gives the agent of one cluster its rights.
func (c *Controller) reconcileRights(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	// Until all have synced, it is unknown what there is.
	for _, wait := range []func(context.Context) error{c.asked.WaitSynced, c.roles.WaitSynced, c.bindings.WaitSynced} {
		if err := wait(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	cluster, at := key.Name, reconcile.Key{Namespace: key.Name, Name: authenticationv1beta1.AgentRole}
	r := grant{Cluster: cluster, Names: c.namesOf(cluster)}
	var err error
	if r.AddOn, err = c.addOn(ctx, cluster); err != nil {
		return reconcile.Result{}, err
	}
	r.Role, _ = c.roles.Get(at)
	r.Binding, _ = c.bindings.Get(at)
	writes, err := r.decide()
	var result reconcile.Result
	if err == nil {
		result, err = c.granting.Execute(ctx, instance(cluster), reconcile.Plan{Writes: writes, Order: reconcile.Strict})
	}
	c.note(cluster, err)
	return result, err
}

// instance returns the add-on's instance on a cluster, as what the writes are about.
func instance(cluster string) *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{
		TypeMeta:   metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn"},
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: authenticationv1beta1.AddOnName},
	}
}

// note remembers why the agent of a cluster has no rights, and reports that if it is new.
func (c *Controller) note(cluster string, err error) {
	var now string
	if err != nil {
		now = err.Error()
	}
	c.mu.Lock()
	before := c.problems[cluster]
	c.problems[cluster] = now
	if now == "" {
		delete(c.problems, cluster)
	}
	c.mu.Unlock()
	if before != now {
		c.wake(cluster)
	}
}
