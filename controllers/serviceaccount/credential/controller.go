// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"cmp"
	"context"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/membership"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Name identifies the loop.
const Name = "serviceaccount.credential"

// workers is how many profiles are worked on at a time.
const workers = 4

var (
	asked    = authenticationv1beta1.GroupVersion.WithResource("managedserviceaccounts")
	profiles = multiclusterv1alpha1.GroupVersion.WithResource("clusterprofiles")
	secrets  = corev1.SchemeGroupVersion.WithResource("secrets")
)

// Config configures the loop.
type Config struct {
	// Client watches profiles and ManagedServiceAccounts.
	Client dynamic.Interface
	// Manager reads and writes Secrets, as the add-on manager.
	Manager dynamic.Interface
	Clock   clock.PassiveClock
	// Index has the sets of clusters and the namespaces bound to them.
	Index *membership.Index
	// Log receives why something cannot be read.
	Log logr.Logger
}

// Controller is the loop.
type Controller struct {
	config   Config
	reader   manager.Reader
	exec     *reconcile.Executor
	queue    *reconcile.Queue
	accounts *watch.Collection[types.UID]
	profiles *watch.Collection[types.UID]
	sources  *watch.Collection[source]
	copies   *watch.Collection[replica]

	mu sync.Mutex
	// names are those of the accounts of each cluster.
	names map[string]sets.Set[string]
	// of is the profile of each copy, and owned are the copies of each profile.
	of    map[reconcile.Key]reconcile.Key
	owned map[reconcile.Key]sets.Set[string]
}

// Register adds the loop to m. Both APIs must be served, or be about to be.
func Register(m *manager.Manager, c Config) {
	l := &Controller{
		config: c, reader: m.Reader(), exec: reconcile.NewExecutor(c.Manager, Name, c.Clock), queue: reconcile.NewQueue(Name),
		names: map[string]sets.Set[string]{}, of: map[reconcile.Key]reconcile.Key{}, owned: map[reconcile.Key]sets.Set[string]{},
	}
	log := c.Log.WithName(Name)
	l.accounts = watch.New(watch.Options[types.UID]{
		Client: c.Client, Resource: asked, LabelSelector: authenticationv1beta1.LabelSyncToClusterProfile + "=true",
		Keep: keepLiving, Same: same[types.UID], Log: log,
	})
	l.profiles = watch.New(watch.Options[types.UID]{
		Client: c.Client, Resource: profiles, LabelSelector: multiclusterv1alpha1.LabelClusterManager + "=" + multiclusterv1alpha1.ManagerName,
		Keep: keepProfile, Same: same[types.UID], Log: log,
	})
	l.sources = watch.New(watch.Options[source]{
		Client: c.Manager, Resource: secrets, LabelSelector: authenticationv1beta1.LabelManaged + "=true", Keep: keepSource, Same: same[source], Log: log,
	})
	l.copies = watch.New(watch.Options[replica]{
		Client: c.Manager, Resource: secrets, LabelSelector: authenticationv1beta1.LabelSyncedFrom, Keep: keepReplica, Log: log,
	})
	l.accounts.OnChange(l.accountChanged)
	l.profiles.OnChange(l.queue.Add)
	l.sources.OnChange(func(key reconcile.Key) {
		if _, ok := l.accounts.Get(key); ok {
			l.wake(key.Namespace)
		}
	})
	l.copies.OnChange(l.copyChanged)
	c.Index.Listen(membership.Listener{
		Member:  func(set, cluster string) { l.add(c.Index.Bound(set), []string{cluster}) },
		Binding: func(namespace, set string) { l.add([]string{namespace}, c.Index.Members(set)) },
	})
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		if old == nil || current == nil { // a namespace became that of a cluster, or is it no longer
			name := cmp.Or(current, old).Name
			l.add([]string{name}, c.Index.Reached(name))
		}
	})
	for _, one := range []interface {
		Run(context.Context) error
		OnSynced(func())
	}{l.accounts, l.profiles, l.sources, l.copies} {
		one.OnSynced(l.wakeAll)
		m.AddTask(one.Run)
	}
	m.Add(reconcile.Loop{Name: Name, Workers: workers, Reconcile: l.Reconcile}, l.queue)
}

func same[T comparable](before, now T) bool { return before == now }

// keepLiving keeps the UID of an object that is not being deleted.
func keepLiving(u *unstructured.Unstructured) (types.UID, bool) {
	return u.GetUID(), u.GetDeletionTimestamp() == nil
}

// keepProfile keeps the UID of a profile that this hub maintains: one with its manager, and with the
// name of the cluster that its label names.
func keepProfile(u *unstructured.Unstructured) (types.UID, bool) {
	uid, living := keepLiving(u)
	by, _, _ := unstructured.NestedString(u.Object, "spec", "clusterManager", "name")
	return uid, living && by == multiclusterv1alpha1.ManagerName && u.GetLabels()[clusterv1.LabelClusterName] == u.GetName()
}

// accountChanged follows a ManagedServiceAccount that got or lost the label, came or went.
func (l *Controller) accountChanged(key reconcile.Key) {
	_, exists := l.accounts.Get(key)
	l.mu.Lock()
	put(l.names, key.Namespace, key.Name, exists)
	l.mu.Unlock()
	l.wake(key.Namespace)
}

// copyChanged follows a copy that came, changed or went, for the profile that it had and the one
// that it has.
func (l *Controller) copyChanged(key reconcile.Key) {
	r, exists := l.copies.Get(key)
	l.mu.Lock()
	before, had := l.of[key]
	now := reconcile.Key{Namespace: key.Namespace, Name: r.Profile}
	if had {
		put(l.owned, before, key.Name, false)
		delete(l.of, key)
	}
	if exists && r.Profile != "" {
		put(l.owned, now, key.Name, true)
		l.of[key] = now
		l.queue.Add(now)
	}
	l.mu.Unlock()
	if had {
		l.queue.Add(before)
	}
}

// put adds a name to a group or removes it; a group without names is dropped.
func put[K comparable](groups map[K]sets.Set[string], group K, name string, there bool) {
	switch {
	case there && groups[group] == nil:
		groups[group] = sets.New(name)
	case there:
		groups[group].Insert(name)
	default:
		if groups[group].Delete(name); len(groups[group]) == 0 {
			delete(groups, group)
		}
	}
}

// wake queues the profiles of a cluster.
func (l *Controller) wake(cluster string) { l.add(l.config.Index.Reaching(cluster), []string{cluster}) }

func (l *Controller) add(namespaces, clusters []string) {
	for _, namespace := range namespaces {
		for _, cluster := range clusters {
			l.queue.Add(reconcile.Key{Namespace: namespace, Name: cluster})
		}
	}
}

// wakeAll queues every cluster with an account, and every profile with a copy, once all is known.
func (l *Controller) wakeAll() {
	if !l.synced() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for cluster := range l.names {
		l.wake(cluster)
	}
	for profile := range l.owned {
		l.queue.Add(profile)
	}
}

// synced reports whether all is known. Before that, what is missing means nothing.
func (l *Controller) synced() bool {
	for _, c := range []<-chan struct{}{l.accounts.Synced(), l.profiles.Synced(), l.sources.Synced(), l.copies.Synced()} {
		select {
		case <-c:
		default:
			return false
		}
	}
	return true
}

// Reconcile brings the copies beside one profile up to date.
func (l *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	if !l.synced() {
		return reconcile.Result{}, nil
	}
	s, err := l.gather(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	return l.exec.Execute(ctx, &multiclusterv1alpha1.ClusterProfile{
		TypeMeta:   metav1.TypeMeta{APIVersion: multiclusterv1alpha1.GroupVersion.String(), Kind: "ClusterProfile"},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: s.Profile},
	}, decide(s))
}

// gather reads the state from the collections, and those Secrets of which something is missing.
func (l *Controller) gather(ctx context.Context, key reconcile.Key) (state, error) {
	s := state{Key: key}
	cluster, err := hub.FindCluster(ctx, l.reader, key.Name, manager.NotCopied)
	if err != nil {
		return s, err
	}
	if uid, ok := l.profiles.Get(key); ok && cluster != nil && cluster.DeletionTimestamp == nil && l.config.Index.Reaches(key.Namespace, key.Name) {
		s.Profile = uid
	}
	here, err := hub.FindCluster(ctx, l.reader, key.Namespace, manager.NotCopied)
	if err != nil {
		return s, err
	}
	s.InCluster = here != nil
	l.mu.Lock()
	names, owned := sets.List(l.names[key.Name]), sets.List(l.owned[key])
	l.mu.Unlock()
	for _, name := range owned {
		if r, ok := l.copies.Get(reconcile.Key{Namespace: key.Namespace, Name: name}); ok {
			s.Copies = append(s.Copies, r)
		}
	}
	for _, name := range names {
		a, err := l.gatherAccount(ctx, s, name)
		if err != nil {
			return s, err
		}
		if a != nil {
			s.Accounts = append(s.Accounts, *a)
		}
	}
	return s, nil
}

// gatherAccount reads what there is of one account, or returns nil if it is gone. What has to be
// written is read from the API server, and so is what may be in the way of a new copy.
func (l *Controller) gatherAccount(ctx context.Context, s state, name string) (*account, error) {
	from := reconcile.Key{Namespace: s.Key.Name, Name: name}
	uid, ok := l.accounts.Get(from)
	if !ok {
		return nil, nil
	}
	a := &account{Name: name}
	if found, ok := l.sources.Get(from); ok && found.Account == uid {
		a.Source = &found
	}
	to := reconcile.Key{Namespace: s.Key.Namespace, Name: authenticationv1beta1.CopyName(s.Key.Name, name)}
	if found, ok := l.copies.Get(to); ok {
		a.Copy = &found
	}
	if !s.needs(*a) {
		return a, nil
	}
	if a.Copy == nil {
		live, err := typed.Get[corev1.Secret](ctx, l.config.Manager, secrets, to.Namespace, to.Name)
		if err == nil {
			r := replicaOf(live)
			a.Copy = &r
			return a, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	live, err := typed.Get[corev1.Secret](ctx, l.config.Manager, secrets, from.Namespace, from.Name)
	if err != nil {
		return a, reconcile.IgnoreNotFound(err)
	}
	now, content := sourceOf(live)
	if now.Account == uid {
		a.Source = &now
		if now.Fault == "" {
			a.Content = &content
		}
	}
	return a, nil
}
