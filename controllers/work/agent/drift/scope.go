// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// maxNamespaces is the number of namespaces up to which a resource is watched namespace
// by namespace. Above it, one cluster-wide watch costs the API server less.
const maxNamespaces = 8

// scope is what one watch covers; an empty namespace covers the cluster.
type scope struct {
	resource  schema.GroupVersionResource
	namespace string
}

// tables are the declared objects, by resource.
type tables map[schema.GroupVersionResource]*table

// table holds the objects of one resource that works declare, by namespace.
type table struct {
	resource schema.GroupVersionResource
	spaces   map[string]*space
}

// space holds the objects of a namespace, or those that have none.
type space struct {
	of        *table
	namespace string
	// alone holds, by name, the works that are the only ones to declare an object, and
	// shared all others.
	alone  map[string]*holder
	shared map[string][]*holder
}

// object names one object of a watched resource.
type object struct {
	in   *space
	name string
}

// holder is a work with what it declares.
type holder struct {
	work    string
	objects []object
}

// works returns the works that declare an object.
func (s *space) works(name string) []*holder {
	if one := s.alone[name]; one != nil {
		return []*holder{one}
	}
	return s.shared[name]
}

func (s *space) setWorks(name string, works []*holder) {
	delete(s.alone, name)
	delete(s.shared, name)
	switch len(works) {
	case 0:
	case 1:
		s.alone[name] = works[0]
	default:
		s.shared[name] = works
	}
}

// hold records that a work declares an object. first is true if no other work did so
// before.
func (ts tables) hold(resource schema.GroupVersionResource, key reconcile.Key, by *holder) (o object, first bool) {
	t := ts[resource]
	if t == nil {
		t = &table{resource: resource, spaces: map[string]*space{}}
		ts[resource] = t
	}
	s := t.spaces[key.Namespace]
	if s == nil {
		s = &space{of: t, namespace: key.Namespace, alone: map[string]*holder{}, shared: map[string][]*holder{}}
		t.spaces[key.Namespace] = s
	}
	before := s.works(key.Name)
	if !slices.Contains(before, by) {
		s.setWorks(key.Name, append(slices.Clone(before), by))
	}
	return object{s, key.Name}, len(before) == 0
}

// release records that a work no longer declares an object.
func (ts tables) release(o object, by *holder) {
	s := o.in
	s.setWorks(o.name, slices.DeleteFunc(slices.Clone(s.works(o.name)), func(h *holder) bool { return h == by }))
	if len(s.alone)+len(s.shared) > 0 {
		return
	}
	delete(s.of.spaces, s.namespace)
	if len(s.of.spaces) == 0 {
		delete(ts, s.of.resource)
	}
}

// works returns the works that declare an object.
func (ts tables) works(resource schema.GroupVersionResource, key reconcile.Key) []*holder {
	if t := ts[resource]; t != nil && t.spaces[key.Namespace] != nil {
		return t.spaces[key.Namespace].works(key.Name)
	}
	return nil
}

// worksIn returns the names of the works with objects in a scope.
func (ts tables) worksIn(in scope) map[string]bool {
	out := map[string]bool{}
	t := ts[in.resource]
	if t == nil {
		return out
	}
	for namespace, s := range t.spaces {
		if in.namespace != "" && in.namespace != namespace {
			continue
		}
		for _, h := range s.alone {
			out[h.work] = true
		}
		for _, all := range s.shared {
			for _, h := range all {
				out[h.work] = true
			}
		}
	}
	return out
}

// scopes returns the watches that the objects need. Resources in wide may not be watched
// cluster-wide and are watched namespace by namespace, in any number.
func (ts tables) scopes(wide map[schema.GroupVersionResource]bool) map[scope]bool {
	out := map[scope]bool{}
	for resource, t := range ts {
		if t.spaces[""] != nil || (len(t.spaces) > maxNamespaces && !wide[resource]) {
			out[scope{resource: resource}] = true
			continue
		}
		for namespace := range t.spaces {
			out[scope{resource, namespace}] = true
		}
	}
	return out
}
