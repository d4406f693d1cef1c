// SPDX-License-Identifier: Apache-2.0

package runner

import (
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
}

// collection is a watch, whatever it holds.
type collection interface {
	Run(context.Context) error
	WaitSynced(context.Context) error
}

// watches returns all watches of the runner.
func (r *runner) watches() []collection {
	out := []collection{r.instances, r.clusters, r.works, r.bindings, r.requests}
	if r.roles != nil {
		out = append(out, r.roles)
	}
	if r.addOns != nil {
		out = append(out, r.addOns)
	}
	if r.hashes != nil {
		for _, kind := range r.hashes.kinds {
			out = append(out, kind)
		}
	}
	return out
}

// name returns the id of a loop.
func (r *runner) name(loop string) string { return "addon." + r.id + "." + loop }

// newRunner makes queues and collections, and connects them.
func newRunner(c Config, id string, find func(*addonv1alpha1.ManagedClusterAddOn) (addonkit.AddOn, bool), s scope) *runner {
	if c.Workers <= 0 {
		c.Workers = defaultWorkers
	}
	if c.Rights == nil {
		c.Rights = c.Client
	}
	r := &runner{Config: c, id: id, find: find, scope: s}
	r.drawn.words, r.asked.words = &r.words, &r.words
	r.register, r.deploy, r.answer = reconcile.NewQueue(r.name("registration")), reconcile.NewQueue(r.name("deploy")), reconcile.NewQueue(r.name("request"))
	r.unregistered, r.unanswered = reconcile.NewRefusals(r.register), reconcile.NewRefusals(r.answer)
	r.deploying, r.answering = r.executor("deploy"), r.executor("request")
	r.registering = reconcile.NewExecutor(r.Rights, r.name("registration"), r.Clock)
	r.watchInstances()
	if r.addOn != "" {
		r.watchAddOn()
	}
	r.watchRights()
	r.requests = newGroup(&r.words, grouping[*certificatesv1.CertificateSigningRequest]{
		Options: r.labelled(certificates, ""), of: marked[*certificatesv1.CertificateSigningRequest],
		// Answered requests are not reconciled again.
		slim: func(c *certificatesv1.CertificateSigningRequest) bool {
			return registration.Open(c) || registration.ToSign(c)
		},
		changed: func(reconcile.Key) {},
	})
	r.requests.OnChange(r.answer.Add)
	return r
}

func (r *runner) executor(loop string) *reconcile.Executor {
	return reconcile.NewExecutor(r.Client, r.name(loop), r.Clock)
}

// labelled returns the watch options for the add-ons' objects, by their labels.
func (r *runner) labelled(resource schema.GroupVersionResource, more string) watch.Options[kept] {
	selector := addonv1alpha1.LabelAddOnName
	if r.addOn != "" {
		selector += "=" + r.addOn
	}
	return watch.Options[kept]{Client: r.Client, Resource: resource, LabelSelector: selector + more}
}

// marked returns the instance that an object's labels name.
func marked[P metav1.Object](o P) reconcile.Key {
	return reconcile.Key{Namespace: o.GetLabels()[clusterv1.LabelClusterName], Name: o.GetLabels()[addonv1alpha1.LabelAddOnName]}
}

func (r *runner) watchInstances() {
	o := watch.Options[kept]{Client: r.Client, Resource: addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")}
	if r.addOn != "" {
		o.FieldSelector = "metadata.name=" + r.addOn
	}
	r.instances = newGroup(&r.words, grouping[*addonv1alpha1.ManagedClusterAddOn]{
		Options: o, of: func(a *addonv1alpha1.ManagedClusterAddOn) reconcile.Key { return reconcile.Key{Name: a.Namespace} },
		changed: func(reconcile.Key) {},
	})
	r.instances.OnChange(r.changed)
	r.clusters = newGroup(&r.words, grouping[*clusterv1.ManagedCluster]{
		Options: watch.Options[kept]{Client: r.Client, Resource: clusterv1.GroupVersion.WithResource("managedclusters")},
		of:      func(c *clusterv1.ManagedCluster) reconcile.Key { return reconcile.Key{Name: c.Name} },
		slim: func(c *clusterv1.ManagedCluster) bool {
			if r.slim != nil {
				r.slim(c)
			}
			return true
		},
		changed: func(key reconcile.Key) { r.clusterChanged(key.Name) },
	})
	r.works = newGroup(&r.words, grouping[*workv1.ManifestWork]{
		Options: r.labelled(workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks), ""),
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
	r.addOns = newGroup(&r.words, grouping[*addonv1alpha1.ClusterManagementAddOn]{
		Options: watch.Options[kept]{
			Client: r.Client, Resource: addonv1alpha1.GroupVersion.WithResource("clustermanagementaddons"), FieldSelector: "metadata.name=" + r.addOn,
		},
		of:      func(a *addonv1alpha1.ClusterManagementAddOn) reconcile.Key { return reconcile.Key{Name: a.Name} },
		changed: func(reconcile.Key) {},
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
	r.bindings = newGroup(&r.words, grouping[*rbacv1.RoleBinding]{
		Options: r.labelled(bindingsAPI, more), of: marked[*rbacv1.RoleBinding], changed: r.register.Add,
	})
	if r.label == "" {
		r.roles = newGroup(&r.words, grouping[*rbacv1.Role]{Options: r.labelled(rolesAPI, more), of: marked[*rbacv1.Role], changed: r.register.Add})
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
			r.deploy.Add(reconcile.Key{Namespace: a.Namespace, Name: a.Name})
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
