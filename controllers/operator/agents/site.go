// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// restored are the kinds of objects that the loop puts back when others change them, besides
// Deployments and namespaces.
var restored = []schema.GroupVersionResource{
	accountsResource,
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

// site is what the loop watches of a cluster that has objects of agents: the one that it runs on,
// or the managed cluster of a hosted agent.
type site struct {
	namespaces *watch.Collection[Labelled]
	secrets    map[string]*watch.Collection[Secret]
	restored   map[schema.GroupVersionResource]*watch.Collection[Labelled]
	shared     *shared.Watch
	// owners remembers the Klusterlet of the label of each object, which is gone when the object
	// is.
	owners sync.Map
}

// siteOptions say what to watch of a cluster.
type siteOptions struct {
	client dynamic.Interface
	// klusterlet is that of a hosted agent, whose managed cluster it is; empty for the cluster of
	// all Klusterlets.
	klusterlet string
	// policies makes the loop put back NetworkPolicies, too.
	policies bool
	// secrets are the names of the Secrets to watch, in any namespace.
	secrets     []string
	definitions []*unstructured.Unstructured
	version     string
	// wakeAll is called after a change that may concern every Klusterlet, wake after one that
	// concerns that one.
	wakeAll func()
	wake    func(klusterlet string)
	log     logr.Logger
}

func newSite(o siteOptions) *site {
	s := &site{secrets: map[string]*watch.Collection[Secret]{}, restored: map[schema.GroupVersionResource]*watch.Collection[Labelled]{}}
	s.shared = shared.NewWatch(o.client, o.definitions, o.version, o.wakeAll, o.log)
	s.namespaces = watch.New(watch.Options[Labelled]{Client: o.client, Resource: namespacesResource, Log: o.log, Keep: keepLabelled})
	s.namespaces.OnChange(func(reconcile.Key) { o.wakeAll() })
	for _, name := range o.secrets {
		s.secrets[name] = watch.New(watch.Options[Secret]{
			Client: o.client, Resource: request.Secrets, FieldSelector: "metadata.name=" + name, Log: o.log, Keep: keepSecret,
		})
		s.secrets[name].OnChange(func(reconcile.Key) { o.wakeAll() })
	}
	selector, kinds := operatorv1.LabelCreatedByKlusterlet, restored
	if o.klusterlet != "" {
		selector += "=" + o.klusterlet
	}
	if o.policies {
		kinds = append(slices.Clone(kinds), policiesResource)
	}
	for _, resource := range kinds {
		list := watch.New(watch.Options[Labelled]{
			Client: o.client, Resource: resource, LabelSelector: selector, Log: o.log,
			Keep: func(u *unstructured.Unstructured) (Labelled, bool) {
				seen, _ := keepLabelled(u)
				s.owners.Store(reconcile.KeyOf(u), seen.Owner)
				return seen, true
			},
		})
		list.OnChange(func(key reconcile.Key) {
			if owner, ok := s.owners.Load(key); ok {
				o.wake(owner.(string))
			}
		})
		s.restored[resource] = list
	}
	return s
}

// collections returns what the site reads.
func (s *site) collections() []shared.Collection {
	out := append(s.shared.Collections(), s.namespaces)
	for _, one := range s.secrets {
		out = append(out, one)
	}
	for _, one := range s.restored {
		out = append(out, one)
	}
	return out
}

// live returns the applies of objects, with what is known of them.
func (s *site) live(objects []*unstructured.Unstructured) []reconcile.Write {
	var out []reconcile.Write
	for _, u := range objects {
		seen, _ := s.restored[reconcile.ResourceOf(u.GroupVersionKind())].Get(reconcile.KeyOf(u))
		out = append(out, reconcile.Apply{Object: u, LiveVersion: seen.Version})
	}
	return out
}

// former returns the removals of rights that the agent of a Klusterlet had as a process of its own,
// or by an earlier release, and has no longer. The binding goes first.
func (s *site) former(klusterlet string) []reconcile.Write {
	var out []reconcile.Write
	for _, kind := range []string{"clusterrolebindings", "clusterroles"} {
		resource := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: kind}
		if seen, ok := s.restored[resource].Get(reconcile.Key{Name: aloneRights(klusterlet)}); ok && seen.Owner == klusterlet {
			out = append(out, reconcile.Remove{Target: reconcile.Target{Resource: resource, Name: seen.Name, UID: seen.UID}})
		}
	}
	return out
}
