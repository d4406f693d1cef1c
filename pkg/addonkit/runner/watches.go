// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"slices"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/packed"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/deploy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var (
	certificates = certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")
	rolesAPI     = rbacv1.SchemeGroupVersion.WithResource("roles")
	bindingsAPI  = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

// scope is what a runner watches: one add-on, or all whose bindings carry a label.
type scope struct {
	addOn, label string
	// hosted reports whether its instances may run on other clusters.
	hosted bool
	// slim, if set, drops from a cluster what is not needed.
	slim func(*clusterv1.ManagedCluster)
}

// runner holds what the loops share.
type runner struct {
	Config
	id   string
	find func(*addonv1alpha1.ManagedClusterAddOn) (addonkit.AddOn, bool)
	scope
	words  packed.Dictionary
	warned warned
	// drawn and asked are the answers of add-ons that say what their answers depend on.
	drawn memo[drawn]
	asked memo[asked]

	// instances and clusters are found by the name of the cluster, add-ons by their own
	// name, and everything else by the instance. If roles is nil, none are created; if
	// addOns is nil, find knows which configurations instances are given.
	addOns    *group[addonv1alpha1.ClusterManagementAddOn, *addonv1alpha1.ClusterManagementAddOn]
	instances *group[addonv1alpha1.ManagedClusterAddOn, *addonv1alpha1.ManagedClusterAddOn]
	clusters  *group[clusterv1.ManagedCluster, *clusterv1.ManagedCluster]
	works     *group[workv1.ManifestWork, *workv1.ManifestWork]
	roles     *group[rbacv1.Role, *rbacv1.Role]
	bindings  *group[rbacv1.RoleBinding, *rbacv1.RoleBinding]
	requests  *group[certificatesv1.CertificateSigningRequest, *certificatesv1.CertificateSigningRequest]

	// register, deploy and answer are the queues of the loops; keys of the first two are
	// instances, those of the third certificate requests.
	register, deploy, answer *reconcile.Queue
	// unregistered and unanswered are the keys of register and answer that met a refusal.
	unregistered, unanswered *reconcile.Refusals
	// hashes is nil for add-ons without configurations of their own kinds.
	hashes *hashes

	registering, deploying, answering *reconcile.Executor

	watched []collection
	loops   []loop
}

// loop is a loop and its queue.
type loop struct {
	reconcile.Loop
	queue *reconcile.Queue
}

// queue adds a loop that run will run, and returns its queue.
func (r *runner) queue(name string, workers int, do func(context.Context, reconcile.Key) (reconcile.Result, error)) *reconcile.Queue {
	l := loop{reconcile.Loop{Name: r.name(name), Workers: workers, Reconcile: do}, reconcile.NewQueue(r.name(name))}
	r.loops = append(r.loops, l)
	return l.queue
}

// collection is a watch, whatever it holds.
type collection interface {
	Run(context.Context) error
	WaitSynced(context.Context) error
}

// watched returns a group that run will fill.
func watched[T any, P object[T]](r *runner, resource schema.GroupVersionResource, g grouping[P]) *group[T, P] {
	g.Client, g.Resource = r.Client, resource
	out := newGroup[T](&r.words, g)
	r.watched = append(r.watched, out)
	return out
}

// name returns the id of a loop.
func (r *runner) name(loop string) string { return "addon." + r.id + "." + loop }

// newRunner makes queues and collections, and connects them.
func newRunner(c Config, id string, find func(*addonv1alpha1.ManagedClusterAddOn) (addonkit.AddOn, bool), s scope) *runner {
	if c.Workers <= 0 {
		c.Workers = defaultWorkers
	}
	c.Rights = cmp.Or(c.Rights, c.Client)
	r := &runner{Config: c, id: id, find: find, scope: s}
	r.drawn.words, r.asked.words = &r.words, &r.words
	r.register = r.queue("registration", r.Workers, r.reconcileRegistration)
	r.deploy = r.queue("deploy", r.Workers, r.reconcileDeploy)
	r.answer = r.queue("request", 0, r.reconcileRequest)
	r.unregistered, r.unanswered = reconcile.NewRefusals(r.register), reconcile.NewRefusals(r.answer)
	r.deploying, r.answering = r.executor("deploy"), r.executor("request")
	r.registering = reconcile.NewExecutor(r.Rights, r.name("registration"), r.Clock)
	r.watchInstances()
	if r.addOn != "" {
		r.watchAddOn()
	}
	r.watchRights()
	r.requests = watched(r, certificates, grouping[*certificatesv1.CertificateSigningRequest]{
		Options: r.labelled(""), of: marked[*certificatesv1.CertificateSigningRequest],
		// Answered requests are not reconciled again.
		slim: func(c *certificatesv1.CertificateSigningRequest) bool {
			return registration.Open(c) || registration.ToSign(c)
		},
	})
	r.requests.OnChange(r.answer.Add)
	return r
}

func (r *runner) executor(loop string) *reconcile.Executor {
	return reconcile.NewExecutor(r.Client, r.name(loop), r.Clock)
}

// labelled selects the add-ons' objects by their labels.
func (r *runner) labelled(more string) watch.Options[kept] {
	selector := addonv1alpha1.LabelAddOnName
	if r.addOn != "" {
		selector += "=" + r.addOn
	}
	return watch.Options[kept]{LabelSelector: selector + more}
}

// marked returns the instance that an object's labels name.
func marked[P metav1.Object](o P) reconcile.Key {
	return reconcile.Key{Namespace: o.GetLabels()[clusterv1.LabelClusterName], Name: o.GetLabels()[addonv1alpha1.LabelAddOnName]}
}

func (r *runner) watchInstances() {
	o := watch.Options[kept]{}
	if r.addOn != "" {
		o.FieldSelector = "metadata.name=" + r.addOn
	}
	r.instances = watched(r, addonv1alpha1.GroupVersion.WithResource("managedclusteraddons"), grouping[*addonv1alpha1.ManagedClusterAddOn]{
		Options: o, of: func(a *addonv1alpha1.ManagedClusterAddOn) reconcile.Key { return reconcile.Key{Name: a.Namespace} },
	})
	r.instances.OnChange(r.changed)
	r.clusters = watched(r, clusterv1.GroupVersion.WithResource("managedclusters"), grouping[*clusterv1.ManagedCluster]{
		of: func(c *clusterv1.ManagedCluster) reconcile.Key { return reconcile.Key{Name: c.Name} },
		slim: func(c *clusterv1.ManagedCluster) bool {
			if r.slim != nil {
				r.slim(c)
			}
			return true
		},
		changed: func(key reconcile.Key) { r.clusterChanged(key.Name) },
	})
	r.works = watched(r, workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks), grouping[*workv1.ManifestWork]{
		Options: r.labelled(""),
		of: func(w *workv1.ManifestWork) reconcile.Key {
			key := reconcile.Key{Namespace: w.Namespace, Name: w.Labels[addonv1alpha1.LabelAddOnName]}
			if of := w.Labels[addonv1alpha1.LabelAddOnNamespace]; of != "" {
				key.Namespace = of // on a hosting cluster a label names the cluster that it is for
			}
			return key
		},
		slim:    func(w *workv1.ManifestWork) bool { deploy.Slim(w); return true },
		changed: r.deploy.Add,
	})
}

// watchAddOn watches the add-on, which says what its instances are given. A rollout changes
// its status often, so only a change of the configurations it names queues the instances.
func (r *runner) watchAddOn() {
	r.addOns = watched(r, addonv1alpha1.GroupVersion.WithResource("clustermanagementaddons"), grouping[*addonv1alpha1.ClusterManagementAddOn]{
		Options: watch.Options[kept]{FieldSelector: "metadata.name=" + r.addOn},
		of:      func(a *addonv1alpha1.ClusterManagementAddOn) reconcile.Key { return reconcile.Key{Name: a.Name} },
	})
	var mu sync.Mutex
	var before []addonv1alpha1.AddOnConfig
	r.addOns.OnChange(func(key reconcile.Key) {
		var now []addonv1alpha1.AddOnConfig
		if a := r.addOns.get(key); a != nil {
			now = addonkit.Named(a)
		}
		mu.Lock()
		same := slices.Equal(before, now)
		before = now
		mu.Unlock()
		if same {
			return
		}
		for _, instance := range r.instances.all() {
			r.changed(instance)
		}
	})
}

func (r *runner) watchRights() {
	more := "," + clusterv1.LabelClusterName
	if r.label != "" {
		more += "," + r.label
	}
	o := r.labelled(more)
	r.bindings = watched(r, bindingsAPI, grouping[*rbacv1.RoleBinding]{Options: o, of: marked[*rbacv1.RoleBinding], changed: r.register.Add})
	if r.label == "" {
		r.roles = watched(r, rolesAPI, grouping[*rbacv1.Role]{Options: o, of: marked[*rbacv1.Role], changed: r.register.Add})
	}
}

func (r *runner) changed(key reconcile.Key) {
	r.register.Add(key)
	r.deploy.Add(key)
	// A request may have arrived before its instance.
	for _, csr := range r.requests.keys(key) {
		r.answer.Add(csr)
	}
}

// clusterChanged queues the instances on a cluster, and those that it hosts.
func (r *runner) clusterChanged(name string) {
	for _, key := range r.instances.keys(reconcile.Key{Name: name}) {
		r.changed(key)
	}
	if !r.hosted {
		return
	}
	r.instances.each(func(a *addonv1alpha1.ManagedClusterAddOn) bool {
		addOn, _ := r.find(a)
		if h := r.hosting(addOn, addonkit.Instance{AddOn: a}); h != nil && h.Name == name {
			r.deploy.Add(reconcile.KeyOf(a))
		}
		return true
	})
}

// cluster returns a ManagedCluster, or nil if there is none.
func (r *runner) cluster(name string) *clusterv1.ManagedCluster {
	return r.clusters.get(reconcile.Key{Name: name})
}

// instance returns an instance with its cluster; false if it is gone.
func (r *runner) instance(key reconcile.Key) (addonkit.Instance, bool) {
	a := r.instances.get(key)
	i := addonkit.Instance{AddOn: a, Cluster: r.cluster(key.Namespace)}
	if r.addOns != nil {
		i.Of = r.addOns.get(reconcile.Key{Name: key.Name})
	}
	return i, a != nil
}

// gone stands for an instance that no longer exists, so that its objects can be removed.
func gone(key reconcile.Key) *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{
		TypeMeta:   metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn"},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
	}
}
