// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// assemblyName is the id of the loop that runs the components of the split layout, and applies
// the policies of either.
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

// assembly runs the components of the split layout, and applies the policies of either.
type assembly struct {
	config      Config
	collections *Collections
	leading     *leading
	// all are the objects that there may ever be.
	all     []reconcile.Target
	watches map[location]*watch.Collection[*unstructured.Unstructured]
	// nodes are those of the control plane, and pull is the source of the credentials for
	// images; the compact layout has neither.
	nodes []*watch.Collection[string]
	pull  *watch.Collection[*corev1.Secret]
	// apiServer has the ports of the hub's API server.
	apiServer *watch.Collection[[]int64]
	// inputs are all of these.
	inputs []followed
	exec   *reconcile.Executor
	queue  *reconcile.Queue

	mu sync.Mutex
	assembled
	// changed is called when there is something else to report.
	changed func()
}

// assembled is what a pass came to.
type assembled struct {
	// err is why the objects cannot be prepared or applied.
	err     error
	related []operatorv1.RelatedResourceMeta
	// specs are the hashes of the Deployments' specs at that generation of the ClusterManager.
	specs      map[string]string
	generation int64
}

// everything returns all objects that there may ever be: those of the layout, and what the
// other one leaves here.
func everything(split *Split) ([]*unstructured.Unstructured, error) {
	features := Features{
		AddOnManagement: true, ManifestWorkReplicaSet: true, ClusterPermission: true, PlacementDebugServer: true, NetworkPolicies: true,
		ClusterProxy: true,
	}
	out, err := rendering{Features: features, Bundle: []byte("any")}.objects()
	if split == nil || err != nil {
		return out, err
	}
	more, err := rendering{
		Features: features, Replicas: 2, Split: split,
		PullSecret: pullSecret(&corev1.Secret{}),
	}.objects()
	return append(out, more...), err
}

func newAssembly(config Config, leading *leading, collections *Collections, log logr.Logger) (*assembly, error) {
	a := &assembly{
		config: config, collections: collections, leading: leading, watches: map[location]*watch.Collection[*unstructured.Unstructured]{},
		exec: reconcile.NewExecutor(config.Client, assemblyName, config.Clock), queue: reconcile.NewQueue(assemblyName),
	}
	objects, err := everything(config.Split)
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
		a.inputs = append(a.inputs, a.watches[at])
	}
	a.apiServer = shared.NewAPIServers(config.Client, log)
	a.inputs = append(a.inputs, a.apiServer)
	if config.Split != nil {
		a.watchSplit(log)
	}
	for _, in := range a.inputs {
		in.OnChange(func(reconcile.Key) { a.wake() })
	}
	return a, nil
}

// watchSplit creates the collections that only the split layout needs.
func (a *assembly) watchSplit(log logr.Logger) {
	for _, selector := range a.config.Split.controlPlane() {
		nodes := watch.New(watch.Options[string]{
			Client: a.config.Client, Resource: corev1.SchemeGroupVersion.WithResource("nodes"), LabelSelector: selector, Log: log,
			Keep: func(u *unstructured.Unstructured) (string, bool) { return u.GetName(), true },
			Same: func(before, now string) bool { return before == now },
		})
		a.nodes, a.inputs = append(a.nodes, nodes), append(a.inputs, nodes)
	}
	a.pull = watch.New(watch.Options[*corev1.Secret]{
		Client: a.config.Client, Resource: secretsResource, Namespace: hub.Namespace, FieldSelector: byName(a.config.Split.PullSecret), Log: log,
		Keep: func(u *unstructured.Unstructured) (*corev1.Secret, bool) {
			s, err := typed.FromUnstructured[corev1.Secret](u)
			return s, err == nil
		},
	})
	a.inputs = append(a.inputs, a.pull)
}

// keepWhole keeps everything of an object but the managers of its fields.
func keepWhole(u *unstructured.Unstructured) (*unstructured.Unstructured, bool) {
	out := u.DeepCopy()
	out.SetManagedFields(nil)
	return out, true
}

func (a *assembly) wake() { a.queue.Add(reconcile.Key{Name: hub.Name}) }

// fault returns why the objects cannot be applied.
func (a *assembly) fault() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// has reports whether a Deployment with this spec is what this ClusterManager wants.
func (a *assembly) has(cm *operatorv1.ClusterManager, d readiness) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.generation == cm.Generation && a.specs[d.name] == d.spec
}

// objects returns the objects that it applies.
func (a *assembly) objects() []operatorv1.RelatedResourceMeta {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.related
}

func (a *assembly) runs() []func(context.Context) error {
	return append(runsOf(a.inputs), a.loop)
}

func (a *assembly) loop(ctx context.Context) error {
	for _, one := range slices.Concat(a.leading.list(), []followed{a.collections.managers, a.collections.tls.watch}, a.inputs) {
		if err := one.WaitSynced(ctx); err != nil {
			return ignoreStopped(ctx, err)
		}
	}
	a.wake()
	return reconcile.Loop{Name: assemblyName, Reconcile: a.reconcile}.Run(ctx, a.queue)
}

// reconcile applies the objects, and reports to the other loop what they are and why they
// could not be applied.
func (a *assembly) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	is, ok := a.collections.managers.Get(key)
	if !ok || is.blank {
		return reconcile.Result{}, nil
	}
	cm := is.ClusterManager
	s, err := a.gather(cm)
	if err != nil {
		a.mu.Lock()
		before := a.assembled
		a.mu.Unlock()
		before.err = err
		a.report(before)
		return reconcile.Result{}, err
	}
	result, err := a.exec.Execute(ctx, cm, decideAssembly(s))
	now := assembled{err: err, specs: map[string]string{}, generation: cm.Generation}
	for _, u := range s.Wanted {
		now.related = append(now.related, relatedTo(u))
		if u.GetKind() == "Deployment" {
			now.specs[u.GetName()] = u.GetAnnotations()[operatorv1.AnnotationSpecHash]
		}
	}
	a.report(now)
	return result, err
}

// report hands what a pass came to to the other loop.
func (a *assembly) report(now assembled) {
	a.mu.Lock()
	before := a.assembled
	a.assembled = now
	a.mu.Unlock()
	if fmt.Sprint(before.err) != fmt.Sprint(now.err) || !slices.Equal(now.related, before.related) || now.generation != before.generation ||
		!maps.Equal(now.specs, before.specs) {
		a.changed()
	}
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
	features, _, _ := parseFeatures(cm.Spec)
	features.complete(cm, a.leading.apis(), a.config.Labels, a.config.SyncLabels)
	r := rendering{Spec: cm.Spec, Features: features, Image: hub.ImageOf(a.config.Version), Version: a.config.Version, Split: a.config.Split}
	// All components have the same limits; that of registration is always there.
	first := reconcile.Target{Resource: deploymentsResource, Namespace: hub.ComponentNamespace, Name: components[0].deployment()}
	r.TLS = a.collections.tls.current().argsFor(s.Found[first])
	r.APIServer, _ = a.apiServer.Get(reconcile.Key{Namespace: metav1.NamespaceDefault, Name: "kubernetes"})
	if a.config.SyncLabels {
		r.Labels = syncedLabels(cm.Labels)
	}
	own, ok := a.leading.own.Get(reconcile.Key{Namespace: hub.Namespace, Name: hub.Name})
	if ok && own.image != "" {
		r.Image, r.Pull = own.image, own.pull
	}
	if bundle, found := a.leading.bundle.Get(inHub(operatorv1.ConfigMapCABundle)); found && !a.config.Hosted && a.isProven(s.Found) {
		r.Bundle = bundle.bundle
	}
	if split := a.config.Split; split != nil {
		r.Replicas = split.replicasFor(a.controlPlane())
		if source, ok := a.pull.Get(reconcile.Key{Namespace: hub.Namespace, Name: split.PullSecret}); ok {
			r.PullSecret = pullSecret(source)
		}
	}
	var err error
	s.Wanted, err = r.objects()
	return s, err
}

// isProven reports whether the hub's API server can be recognized, so that the API of managed clusters
// can be served. Until that is known, its registration stays as it is.
func (a *assembly) isProven(found map[reconcile.Target]*unstructured.Unstructured) bool {
	problem, known := a.config.Authority()
	if !known {
		return found[targetOf(apiService(nil))] != nil
	}
	return problem == nil
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

// pullSecret returns the copy of the credentials for images. It has the same name, whatever that of its
// source is, because both layouts have rights to this name only.
func pullSecret(source *corev1.Secret) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: hub.ComponentNamespace, Name: operatorv1.SecretImagePull},
		Type:       source.Type, Data: source.Data,
	}
}
