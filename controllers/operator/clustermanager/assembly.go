// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// assemblyName is the id of the loop that runs the components of the split layout.
const assemblyName = "clustermanager.components"

// assemblyState is the input of decideAssembly.
type assemblyState struct {
	// ClusterManager owns the components.
	ClusterManager *operatorv1.ClusterManager
	// Wanted are the objects that there should be, in the order to apply, and All those that
	// there may ever be.
	Wanted []*unstructured.Unstructured
	All    []reconcile.Target
	// Found are those that there are.
	Found map[reconcile.Target]*unstructured.Unstructured
	// Foreign is true while Deployments of another distribution are there.
	Foreign bool
}

// decideAssembly applies what is missing or changed and removes what is not wanted, in the
// opposite order. It does nothing while the ClusterManager is being deleted, or beside the
// components of another distribution. It is a pure function.
func decideAssembly(s assemblyState) reconcile.Plan {
	var plan reconcile.Plan
	if s.ClusterManager.DeletionTimestamp != nil || s.Foreign {
		return plan
	}
	wanted := map[reconcile.Target]bool{}
	for _, u := range s.Wanted {
		at := targetOf(u)
		wanted[at] = true
		found := s.Found[at]
		if found != nil && (found.GetDeletionTimestamp() != nil || keepPart(found, u).Kept) {
			continue
		}
		version := ""
		if found != nil {
			version = found.GetResourceVersion()
		}
		plan.Writes = append(plan.Writes, reconcile.Apply{Object: u, LiveVersion: version})
	}
	for _, at := range slices.Backward(s.All) {
		if found := s.Found[at]; found != nil && found.GetDeletionTimestamp() == nil && !wanted[at] {
			at.UID, at.Version = found.GetUID(), found.GetResourceVersion()
			plan.Writes = append(plan.Writes, reconcile.Remove{Target: at})
		}
	}
	return plan
}

func targetOf(u *unstructured.Unstructured) reconcile.Target {
	return reconcile.Target{Resource: reconcile.ResourceOf(u.GroupVersionKind()), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// assembly runs the components of the split layout.
type assembly struct {
	config      Config
	collections *Collections
	leading     *leading
	// all are the objects that there may ever be.
	all     []reconcile.Target
	watches map[location]*watch.Collection[*unstructured.Unstructured]
	// nodes are those of the control plane, and pull is the source of the credentials for
	// images.
	nodes []*watch.Collection[string]
	pull  *watch.Collection[*corev1.Secret]
	// apiServer has the ports of the hub's API server.
	apiServer *watch.Collection[[]int64]
	exec      *reconcile.Executor
	queue     *reconcile.Queue

	mu      sync.Mutex
	err     error
	related []operatorv1.RelatedResourceMeta
	// changed, unless nil, is called when err or related changes.
	changed func()
}

// newAssembly returns nil in the compact layout.
func newAssembly(config Config, leading *leading, collections *Collections, log logr.Logger) (*assembly, error) {
	if config.Split == nil {
		return nil, nil //nolint:nilnil // there is none in the compact layout
	}
	a := &assembly{
		config: config, collections: collections, leading: leading, watches: map[location]*watch.Collection[*unstructured.Unstructured]{},
		exec: reconcile.NewExecutor(config.Client, assemblyName, config.Clock), queue: reconcile.NewQueue(assemblyName),
	}
	everything := rendering{
		Features: Features{AddOnManagement: true, ManifestWorkReplicaSet: true, PlacementDebugServer: true, NetworkPolicies: true},
		Replicas: 2, Split: *config.Split,
		PullSecret: pullSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: config.Split.PullSecret}}),
	}
	objects, err := everything.objects()
	if err != nil {
		return nil, err
	}
	for _, u := range objects {
		a.all = append(a.all, targetOf(u))
		at := locationOf(u)
		if a.watches[at] != nil {
			continue
		}
		o := watch.Options[*unstructured.Unstructured]{
			Client: config.Client, Resource: at.resource, Namespace: at.namespace, Log: log, Keep: keepWhole,
			LabelSelector: operatorv1.LabelCreatedByClusterManager + "=" + hub.Name,
		}
		if at.resource == secretsResource { // the others are no business of this process
			o.LabelSelector, o.FieldSelector = "", byName(u.GetName())
		}
		a.watches[at] = watch.New(o)
	}
	for _, selector := range config.Split.controlPlane() {
		a.nodes = append(a.nodes, watch.New(watch.Options[string]{
			Client: config.Client, Resource: corev1.SchemeGroupVersion.WithResource("nodes"), LabelSelector: selector, Log: log,
			Keep: func(u *unstructured.Unstructured) (string, bool) { return u.GetName(), true },
			Same: func(before, now string) bool { return before == now },
		}))
	}
	a.pull = watch.New(watch.Options[*corev1.Secret]{
		Client: config.Client, Resource: secretsResource, Namespace: hub.Namespace, FieldSelector: byName(config.Split.PullSecret), Log: log,
		Keep: func(u *unstructured.Unstructured) (*corev1.Secret, bool) {
			s, err := typed.FromUnstructured[corev1.Secret](u)
			return s, err == nil
		},
	})
	a.apiServer = watch.New(watch.Options[[]int64]{
		Client: config.Client, Resource: slicesResource, Namespace: metav1.NamespaceDefault, FieldSelector: byName("kubernetes"), Log: log,
		Keep: portsOf, Same: slices.Equal[[]int64],
	})
	a.onChange()
	return a, nil
}

// keepWhole keeps everything of an object but the managers of its fields.
func keepWhole(u *unstructured.Unstructured) (*unstructured.Unstructured, bool) {
	out := u.DeepCopy()
	out.SetManagedFields(nil)
	return out, true
}

func (a *assembly) onChange() {
	wake := func(reconcile.Key) { a.wake() }
	for _, w := range a.watches {
		w.OnChange(wake)
	}
	for _, n := range a.nodes {
		n.OnChange(wake)
	}
	a.pull.OnChange(wake)
	a.apiServer.OnChange(wake)
}

func (a *assembly) wake() {
	if a != nil {
		a.queue.Add(reconcile.Key{Name: hub.Name})
	}
}

// fault returns why the components cannot be applied.
func (a *assembly) fault() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// objects returns the objects that the components consist of.
func (a *assembly) objects() []operatorv1.RelatedResourceMeta {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.related
}

func (a *assembly) runs() []func(context.Context) error {
	if a == nil {
		return nil
	}
	out := []func(context.Context) error{a.loop, a.pull.Run, a.apiServer.Run}
	for _, w := range a.watches {
		out = append(out, w.Run)
	}
	for _, n := range a.nodes {
		out = append(out, n.Run)
	}
	return out
}

func (a *assembly) loop(ctx context.Context) error {
	waits := append(a.leading.waits(), a.collections.managers.WaitSynced, a.pull.WaitSynced, a.apiServer.WaitSynced)
	for _, w := range a.watches {
		waits = append(waits, w.WaitSynced)
	}
	for _, n := range a.nodes {
		waits = append(waits, n.WaitSynced)
	}
	for _, synced := range waits {
		if err := synced(ctx); err != nil {
			return ignoreStopped(ctx, err)
		}
	}
	a.wake()
	return reconcile.Loop{Name: assemblyName, Reconcile: a.reconcile}.Run(ctx, a.queue)
}

// reconcile applies the components, and reports to the other loop what they are and why they
// could not be applied.
func (a *assembly) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	cm, ok := a.collections.managers.Get(key)
	if !ok {
		return reconcile.Result{}, nil
	}
	s, err := a.gather(cm)
	if err != nil {
		return reconcile.Result{}, err
	}
	result, err := a.exec.Execute(ctx, cm, decideAssembly(s))
	var related []operatorv1.RelatedResourceMeta
	for _, u := range s.Wanted {
		related = append(related, relatedTo(u))
	}
	a.mu.Lock()
	changed := (err == nil) != (a.err == nil) || err != nil && err.Error() != a.err.Error() || !slices.Equal(related, a.related)
	a.err, a.related = err, related
	a.mu.Unlock()
	if changed {
		a.changed()
	}
	return result, err
}

// gather reads the state from the collections.
func (a *assembly) gather(cm *operatorv1.ClusterManager) (assemblyState, error) {
	s := assemblyState{ClusterManager: cm, All: a.all, Found: map[reconcile.Target]*unstructured.Unstructured{}}
	s.Foreign = slices.ContainsFunc(a.leading.split.List(), func(d readiness) bool { return !d.ours })
	for _, at := range a.all {
		if u, ok := a.watches[location{at.Resource, at.Namespace}].Get(reconcile.Key{Namespace: at.Namespace, Name: at.Name}); ok {
			s.Found[at] = u
		}
	}
	profiles, _ := a.leading.profiles.Get(reconcile.Key{Name: crd.ClusterProfiles})
	features, _, _ := parseFeatures(cm.Spec)
	features.complete(cm, profiles, a.config.Labels, a.config.SyncLabels)
	r := rendering{
		Spec: cm.Spec, Features: features, Image: hub.ImageOf(a.config.Version), Version: a.config.Version, Split: *a.config.Split,
		Replicas: a.config.Split.replicasFor(a.controlPlane()),
	}
	r.APIServer, _ = a.apiServer.Get(reconcile.Key{Namespace: metav1.NamespaceDefault, Name: "kubernetes"})
	if a.config.SyncLabels {
		r.Labels = syncedLabels(cm.Labels)
	}
	if own, ok := a.leading.own.Get(reconcile.Key{Namespace: hub.Namespace, Name: hub.Name}); ok && own.image != "" {
		r.Image, r.Pull = own.image, own.pull
	}
	if source, ok := a.pull.Get(reconcile.Key{Namespace: hub.Namespace, Name: a.config.Split.PullSecret}); ok {
		r.PullSecret = pullSecret(source)
	}
	var err error
	s.Wanted, err = r.objects()
	return s, err
}

// controlPlane counts the nodes of the control plane.
func (a *assembly) controlPlane() int {
	names := map[string]bool{}
	for _, nodes := range a.nodes {
		for _, name := range nodes.List() {
			names[name] = true
		}
	}
	return len(names)
}

// pullSecret returns the copy of the credentials for images.
func pullSecret(source *corev1.Secret) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: hub.ComponentNamespace, Name: source.Name},
		Type:       source.Type, Data: source.Data,
	}
}
