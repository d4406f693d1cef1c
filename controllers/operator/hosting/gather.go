// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"cmp"
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	managersResource    = operatorv1.GroupVersion.WithResource("clustermanagers")
	deploymentsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	servicesResource    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	accountsResource    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// Seen is what is cached of an object.
type Seen struct {
	Version string
	UID     types.UID
	// Owner is the ClusterManager of the label.
	Owner string
	// Data is that of a Secret.
	Data map[string][]byte
}

func keepSeen(u *unstructured.Unstructured) (Seen, bool) {
	s := Seen{Version: u.GetResourceVersion(), UID: u.GetUID(), Owner: u.GetLabels()[operatorv1.LabelCreatedByClusterManager]}
	if u.GetKind() == "Secret" {
		s.Data = request.SecretData(u)
	}
	return s, true
}

// Deployment is what is cached of a Deployment.
type Deployment struct {
	Seen
	Generation int64
	// Leaving is true while it is being deleted, Rolling while its pods are not those that it wants,
	// and Unavailable while it has fewer than it wants.
	Leaving, Rolling, Unavailable bool
	// Image and Pull are those of the hub process.
	Image, Pull string
}

func keepDeployment(u *unstructured.Unstructured) (Deployment, bool) {
	live, err := typed.FromUnstructured[appsv1.Deployment](u)
	if err != nil {
		return Deployment{}, false
	}
	d := Deployment{Generation: live.Generation, Leaving: live.DeletionTimestamp != nil}
	d.Seen, _ = keepSeen(u)
	wanted := int32(1)
	if live.Spec.Replicas != nil {
		wanted = *live.Spec.Replicas
	}
	d.Rolling = live.Generation != live.Status.ObservedGeneration || live.Status.UpdatedReplicas != wanted || live.Status.ReadyReplicas != wanted
	d.Unavailable = live.Status.AvailableReplicas < max(wanted, 1)
	for _, container := range live.Spec.Template.Spec.Containers {
		if container.Name == hub.Name {
			d.Image, d.Pull = container.Image, string(container.ImagePullPolicy)
		}
	}
	return d, true
}

// here is what is watched of the namespace of a hub, and of the operator's own Deployment.
type here struct {
	collections     []shared.Collection
	end             func()
	secrets         map[string]*watch.Collection[Seen]
	services        *watch.Collection[Seen]
	deployment, own *watch.Collection[Deployment]
}

// lookHere returns what is watched of a namespace.
func (c *Controller) lookHere(ctx context.Context, name string) *here {
	h := c.here.Get(name)
	if h != nil {
		return h
	}
	deployment := func(namespace string) *watch.Collection[Deployment] {
		return watch.New(watch.Options[Deployment]{
			Client: c.config.Client, Resource: deploymentsResource, Namespace: namespace, FieldSelector: "metadata.name=" + hub.Name,
			Log: c.config.Log, Keep: keepDeployment,
		})
	}
	seen := func(o watch.Options[Seen]) *watch.Collection[Seen] {
		o.Client, o.Namespace, o.Log, o.Keep = c.config.Client, name, c.config.Log, keepSeen
		return watch.New(o)
	}
	h = &here{secrets: map[string]*watch.Collection[Seen]{}, deployment: deployment(name), own: deployment(hub.Namespace)}
	h.services = seen(watch.Options[Seen]{Resource: servicesResource, LabelSelector: operatorv1.LabelCreatedByClusterManager + "=" + name})
	wake := func(reconcile.Key) { c.queue.Add(reconcile.Key{Name: name}) }
	all := []shared.Collection{h.deployment, h.own, h.services}
	h.deployment.OnChange(wake)
	h.own.OnChange(wake)
	h.services.OnChange(wake)
	for _, secret := range []string{operatorv1.SecretExternalHubKubeconfig, tokenSecret} {
		h.secrets[secret] = seen(watch.Options[Seen]{Resource: request.Secrets, FieldSelector: "metadata.name=" + secret})
		h.secrets[secret].OnChange(wake)
		all = append(all, h.secrets[secret])
	}
	h.collections, h.end = all, shared.Follow(ctx, all)
	c.here.Set(name, h)
	return h
}

// End ends the watches.
func (h *here) End() { h.end() }

// remote is the connection to one hub, and what is watched there.
type remote struct {
	collections []shared.Collection
	end         func()
	// about identifies the kubeconfig.
	about   string
	config  *kubeconfig.Config
	link    *agent.Link
	execute *reconcile.Executor
	objects map[schema.GroupVersionResource]*watch.Collection[Seen]
	manager *watch.Optional[*operatorv1.ClusterManager]
	// apart is true once it is known that nothing else runs a hub there.
	apart bool
}

// connect follows the hub of a kubeconfig.
func (c *Controller) connect(ctx context.Context, name, about string, data map[string][]byte, wanted []*unstructured.Unstructured) (*remote, error) {
	config, err := kubeconfig.ParseSecret(data)
	if err != nil {
		return nil, err
	}
	link, err := agent.NewLink(config, c.config.UserAgent)
	if err != nil {
		return nil, err
	}
	r := &remote{
		about: about, config: config, link: link, execute: reconcile.NewExecutor(link.Client, Name, c.config.Clock),
		objects: map[schema.GroupVersionResource]*watch.Collection[Seen]{},
	}
	log := c.config.Log.WithValues("clustermanager", name)
	wake := func() { c.queue.Add(reconcile.Key{Name: name}) }
	names := map[reconcile.Target]bool{}
	for _, u := range wanted {
		names[targetOf(u)] = true
	}
	var all []shared.Collection
	for at := range names {
		resource := at.Resource
		if r.objects[resource] != nil || resource == managersResource {
			continue
		}
		list := watch.New(watch.Options[Seen]{
			Client: link.Client, Resource: resource, LabelSelector: operatorv1.LabelCreatedByClusterManager + "=" + hub.Name, Log: log,
			Keep: func(u *unstructured.Unstructured) (Seen, bool) {
				seen, _ := keepSeen(u)
				return seen, names[reconcile.Target{Resource: resource, Namespace: u.GetNamespace(), Name: u.GetName()}]
			},
			Same: func(before, now Seen) bool { return before.Version == now.Version },
		})
		list.OnChange(func(reconcile.Key) { wake() })
		list.OnOutcome(func(error) { wake() })
		r.objects[resource] = list
		all = append(all, list)
	}
	r.manager = watch.NewOptional(watch.Options[*operatorv1.ClusterManager]{
		Client: link.Client, Resource: managersResource, FieldSelector: "metadata.name=" + hub.Name, Log: log, Keep: keepManager,
	})
	r.manager.OnChange(wake)
	r.collections, r.end = all, shared.Follow(ctx, append(all, optional{r.manager}))
	return r, nil
}

// End ends the watches and the connection.
func (r *remote) End() {
	r.end()
	r.link.Close()
}

// optional makes a Collection of an Optional, which has nothing to wait for.
type optional struct {
	*watch.Optional[*operatorv1.ClusterManager]
}

func (optional) Synced() <-chan struct{} { return nil }

func targetOf(u *unstructured.Unstructured) reconcile.Target {
	return reconcile.Target{Resource: reconcile.ResourceOf(u.GroupVersionKind()), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// gather reads the state; known is false while something has not answered yet.
func (c *Controller) gather(ctx context.Context, cm *operatorv1.ClusterManager, unreadable string) (s State, known bool, err error) {
	s = State{
		ClusterManager: cm, Unreadable: unreadable, Now: c.config.Clock.Now(), Version: c.config.Version, Image: hub.ImageOf(c.config.Version),
		KeepAPIs: c.config.KeepAPIs,
	}
	if s.refusal() != "" || s.isDone() {
		return s, true, nil
	}
	h := c.lookHere(ctx, cm.Name)
	if s.Here.Problem, known = shared.Problem(h.collections); !known {
		return s, s.Here.Problem != "", nil
	}
	for name, list := range h.secrets {
		if seen, ok := list.Get(reconcile.Key{Namespace: cm.Name, Name: name}); ok && name == tokenSecret {
			s.Here.Token = &seen
		} else if ok {
			s.Here.Access = &seen
		}
	}
	s.Here.Services = map[string]Seen{}
	for _, name := range serviceNames {
		if seen, ok := h.services.Get(reconcile.Key{Namespace: cm.Name, Name: name}); ok {
			s.Here.Services[name] = seen
		}
	}
	if d, ok := h.deployment.Get(reconcile.Key{Namespace: cm.Name, Name: hub.Name}); ok {
		s.Here.Deployment = &d
	}
	if own, ok := h.own.Get(reconcile.Key{Namespace: hub.Namespace, Name: hub.Name}); ok && own.Image != "" {
		s.Image, s.Pull = own.Image, own.Pull
	}
	s.Wanted, err = hub.Objects(hub.Options{Version: c.config.Version, Hosted: true})
	if err != nil {
		return s, true, err
	}
	known, err = c.gatherHub(ctx, &s)
	return s, known, err
}

// away begins what is said of a hub that does not answer.
const away = "The hub cannot be reached: "

// gatherHub reads what is known of the hub.
func (c *Controller) gatherHub(ctx context.Context, s *State) (known bool, err error) {
	name := s.ClusterManager.Name
	at := "Secret " + name + "/" + operatorv1.SecretExternalHubKubeconfig
	secret := s.Here.Access
	if secret == nil {
		c.hubs.Set(name, nil)
		s.Hub.Problem, s.Hub.Absent = at+" is missing: create it with a kubeconfig of the hub", true
		return true, nil
	}
	r := c.hubs.Get(name)
	if about := string(secret.UID) + "/" + secret.Version; r == nil || r.about != about {
		next, err := c.connect(ctx, name, about, secret.Data, s.Wanted)
		c.hubs.Set(name, next)
		if err != nil {
			s.Hub.Problem, s.Hub.Absent = at+": "+err.Error(), true
			return true, nil //nolint:nilerr // the condition tells it
		}
		r = next
	}
	managers, known, problem := r.read()
	if problem != "" {
		s.Hub.Problem = away + problem
		return true, nil
	}
	if !known {
		return false, nil
	}
	if !r.apart {
		if s.Hub.Problem = r.checkApart(ctx, s.ClusterManager, at); s.Hub.Problem != "" {
			return true, nil
		}
		r.apart = true
	}
	if len(managers) > 0 {
		s.Hub.Manager = managers[0]
	}
	s.Hub.Seen = map[reconcile.Target]Seen{}
	for _, u := range s.Wanted {
		if list := r.objects[targetOf(u).Resource]; list != nil {
			s.Hub.Seen[targetOf(u)], _ = list.Get(reconcile.KeyOf(u))
		}
	}
	s.Hub.Kubeconfig, err = r.config.WithTokenFile()
	return true, err
}

// read returns the ClusterManagers of the hub; known is false until everything has been read, and
// problem is why something cannot be.
func (r *remote) read() (managers []*operatorv1.ClusterManager, known bool, problem string) {
	problem, known = shared.Problem(r.collections)
	if known {
		for _, one := range r.collections {
			problem = cmp.Or(problem, watch.Reason(one.Err()))
		}
	}
	managers, listed := r.manager.List()
	if !listed {
		problem = cmp.Or(problem, watch.Reason(r.manager.Err()))
	}
	return managers, known && listed, problem
}

// checkApart returns why the cluster cannot be this hub: it is this very cluster, or runs a hub of
// its own.
func (r *remote) checkApart(ctx context.Context, cm *operatorv1.ClusterManager, at string) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	itself := func(u *unstructured.Unstructured) string {
		if u.GetUID() == cm.UID {
			return at + " leads to this very cluster: use mode Default"
		}
		return ""
	}
	runs := func(u *unstructured.Unstructured) string {
		return "The cluster has a hub process of its own, Deployment " + u.GetNamespace() + "/" + u.GetName() + ": remove that hub first"
	}
	for _, one := range []struct {
		api  dynamic.ResourceInterface
		name string
		tell func(*unstructured.Unstructured) string
	}{
		{r.link.Client.Resource(managersResource), cm.Name, itself},
		{r.link.Client.Resource(deploymentsResource).Namespace(hub.Namespace), hub.Name, runs},
	} {
		live, err := one.api.Get(ctx, one.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return away + watch.Reason(err)
		default:
			if text := one.tell(live); text != "" {
				return text
			}
		}
	}
	return ""
}

// errNoDeployment can only be a programming error.
var errNoDeployment = errors.New("the manifests have no Deployment of the hub")

// servicesAndDeployment returns what runs a hub, as an installer applies it.
func servicesAndDeployment(o hub.Options) (services []*unstructured.Unstructured, deployment *unstructured.Unstructured, err error) {
	all, err := hub.Objects(o)
	if err != nil {
		return nil, nil, err
	}
	for _, u := range all {
		switch {
		case u.GetNamespace() != hub.Namespace:
		case u.GetKind() == "Service" && slices.Contains(serviceNames, u.GetName()):
			services = append(services, u)
		case u.GetKind() == "Deployment":
			deployment = u
		}
	}
	if deployment == nil {
		return nil, nil, errNoDeployment
	}
	return services, deployment, nil
}
