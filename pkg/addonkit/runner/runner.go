// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// defaultWorkers is how many instances a loop works on at once.
const defaultWorkers = 4

// Config of a runner.
type Config struct {
	// Client reads and writes on the hub.
	Client dynamic.Interface
	// Clock is that of conditions and deadlines.
	Clock clock.PassiveClock
	// Workers is how many clusters each loop works on at once; 0 is four. More make a
	// change of all clusters quicker, and the API server busier.
	Workers int
}

// runner holds what the loops of one add-on share.
type runner struct {
	Config
	addOn   addonkit.AddOn
	options addonkit.Options

	instances *watch.Collection[*addonv1alpha1.ManagedClusterAddOn]
	clusters  *watch.Collection[*clusterv1.ManagedCluster]
	works     *group[*workv1.ManifestWork]
	roles     *group[*rbacv1.Role]
	bindings  *group[*rbacv1.RoleBinding]
	requests  *group[*certificatesv1.CertificateSigningRequest]

	// register, deploy and answer are the queues of the loops; the keys of the first
	// two are instances, those of the third certificate requests.
	register, deploy, answer *reconcile.Queue

	registering, deploying *reconcile.Executor
}

var (
	certificates = certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")
	rolesAPI     = rbacv1.SchemeGroupVersion.WithResource("roles")
	bindingsAPI  = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

// Run runs an add-on until ctx ends. It returns at once, with an error that names the
// field, when its options are wrong. What cannot be read or written is tried again.
func Run(ctx context.Context, c Config, addOn addonkit.AddOn) error {
	options := addOn.Options()
	if err := options.Check(); err != nil {
		return fmt.Errorf("options of the add-on: %w", err)
	}
	if c.Workers <= 0 {
		c.Workers = defaultWorkers
	}
	r := &runner{Config: c, addOn: addOn, options: options}
	r.watch()
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, run := range []func(context.Context) error{r.instances.Run, r.clusters.Run, r.works.Run, r.roles.Run, r.bindings.Run, r.requests.Run} {
		running.Go(func() { _ = run(ctx) })
	}
	if err := r.waitSynced(ctx); err != nil {
		return err
	}
	for _, l := range []struct {
		loop  reconcile.Loop
		queue *reconcile.Queue
	}{
		{reconcile.Loop{Name: r.name("registration"), Workers: c.Workers, Reconcile: r.reconcileRegistration}, r.register},
		{reconcile.Loop{Name: r.name("deploy"), Workers: c.Workers, Reconcile: r.reconcileDeploy}, r.deploy},
		{reconcile.Loop{Name: r.name("request"), Reconcile: r.reconcileRequest}, r.answer},
	} {
		running.Go(func() { _ = l.loop.Run(ctx, l.queue) })
	}
	<-ctx.Done()
	return nil
}

// name is the id of a loop.
func (r *runner) name(loop string) string { return "addon." + r.options.Name + "." + loop }

// watch makes queues and collections, and tells the one of the other.
func (r *runner) watch() {
	r.register, r.deploy, r.answer = reconcile.NewQueue(r.name("registration")), reconcile.NewQueue(r.name("deploy")), reconcile.NewQueue(r.name("request"))
	r.registering, r.deploying = reconcile.NewExecutor(r.Client, r.name("registration"), r.Clock), reconcile.NewExecutor(r.Client, r.name("deploy"), r.Clock)
	label := addonv1alpha1.LabelAddOnName + "=" + r.options.Name

	r.instances = watch.New(watch.Options[*addonv1alpha1.ManagedClusterAddOn]{
		Client: r.Client, Resource: addonv1alpha1.GroupVersion.WithResource("managedclusteraddons"),
		FieldSelector: "metadata.name=" + r.options.Name, Keep: whole[addonv1alpha1.ManagedClusterAddOn],
	})
	r.instances.OnChange(r.changed)
	r.clusters = watch.New(watch.Options[*clusterv1.ManagedCluster]{
		Client: r.Client, Resource: clusterv1.GroupVersion.WithResource("managedclusters"), Keep: whole[clusterv1.ManagedCluster],
	})
	r.clusters.OnChange(func(key reconcile.Key) { r.clusterChanged(key.Name) })
	r.works = newGroup(watch.Options[*workv1.ManifestWork]{
		Client: r.Client, Resource: workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks), LabelSelector: label,
	}, func(w *workv1.ManifestWork) reconcile.Key {
		if of := w.Labels[addonv1alpha1.LabelAddOnNamespace]; of != "" {
			return r.key(of) // on a hosting cluster a label names the cluster that it is for
		}
		return r.key(w.Namespace)
	}, pointer[workv1.ManifestWork], r.deploy.Add)
	r.roles = newGroup(watch.Options[*rbacv1.Role]{Client: r.Client, Resource: rolesAPI, LabelSelector: label + "," + clusterv1.LabelClusterName},
		func(o *rbacv1.Role) reconcile.Key { return r.key(o.Labels[clusterv1.LabelClusterName]) }, pointer[rbacv1.Role], r.register.Add)
	r.bindings = newGroup(watch.Options[*rbacv1.RoleBinding]{Client: r.Client, Resource: bindingsAPI, LabelSelector: label + "," + clusterv1.LabelClusterName},
		func(o *rbacv1.RoleBinding) reconcile.Key { return r.key(o.Labels[clusterv1.LabelClusterName]) }, pointer[rbacv1.RoleBinding], r.register.Add)
	r.requests = newGroup(watch.Options[*certificatesv1.CertificateSigningRequest]{Client: r.Client, Resource: certificates, LabelSelector: label},
		func(o *certificatesv1.CertificateSigningRequest) reconcile.Key {
			return r.key(o.Labels[clusterv1.LabelClusterName])
		},
		pointer[certificatesv1.CertificateSigningRequest], func(reconcile.Key) {})
	r.requests.OnChange(r.answer.Add)
}

func (r *runner) waitSynced(ctx context.Context) error {
	return errors.Join(r.instances.WaitSynced(ctx), r.clusters.WaitSynced(ctx), r.works.WaitSynced(ctx), r.roles.WaitSynced(ctx),
		r.bindings.WaitSynced(ctx), r.requests.WaitSynced(ctx))
}

func (r *runner) key(cluster string) reconcile.Key {
	return reconcile.Key{Namespace: cluster, Name: r.options.Name}
}

func (r *runner) changed(key reconcile.Key) {
	r.register.Add(key)
	r.deploy.Add(key)
	// A request may have come before its instance.
	for _, csr := range r.requests.list(key) {
		r.answer.Add(reconcile.Key{Name: csr.Name})
	}
}

// clusterChanged brings up the instance on a cluster, and those that it hosts.
func (r *runner) clusterChanged(name string) {
	r.changed(r.key(name))
	if _, ok := r.addOn.(addonkit.Hosted); !ok {
		return
	}
	for _, a := range r.instances.List() {
		if h := r.hosting(addonkit.Instance{AddOn: a}); h != nil && h.Name == name {
			r.deploy.Add(r.key(a.Namespace))
		}
	}
}

// cluster returns a ManagedCluster; nil when there is none.
func (r *runner) cluster(name string) *clusterv1.ManagedCluster {
	c, _ := r.clusters.Get(reconcile.Key{Name: name})
	return c
}

// instance returns an instance with its cluster; false when it is gone.
func (r *runner) instance(key reconcile.Key) (addonkit.Instance, bool) {
	a, ok := r.instances.Get(key)
	return addonkit.Instance{AddOn: a, Cluster: r.cluster(key.Namespace)}, ok
}

// gone stands for an instance that is no more, so that what it had can be removed.
func gone(key reconcile.Key) *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{
		TypeMeta:   metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn"},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
	}
}
