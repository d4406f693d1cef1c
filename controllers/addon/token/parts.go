// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// parts caches the objects of one kind that carry the label of the token driver.
type parts struct {
	*watch.Collection[registration.TokenPart]
	// live reads the object with this name, whoever created it; nil if there is none.
	live func(ctx context.Context, namespace, name string) (*registration.TokenPart, error)
}

// newParts returns an empty collection. changed is called with the instance whose object was
// created, changed or deleted.
func newParts[T any](
	client dynamic.Interface, resource schema.GroupVersionResource, read func(*T) (registration.TokenPart, bool),
	changed func(reconcile.Key),
) *parts {
	p := &parts{}
	p.Collection = watch.New(watch.Options[registration.TokenPart]{
		Client: client, Resource: resource, LabelSelector: addonv1alpha1.LabelTokenInfrastructure + "=true",
		Keep: func(u *unstructured.Unstructured) (registration.TokenPart, bool) {
			o, err := typed.FromUnstructured[T](u)
			if err != nil {
				return registration.TokenPart{}, false
			}
			return read(o)
		},
	})
	p.live = func(ctx context.Context, namespace, name string) (*registration.TokenPart, error) {
		o, err := typed.Get[T](ctx, client, resource, namespace, name)
		if err != nil {
			return nil, reconcile.IgnoreNotFound(err)
		}
		part, ok := read(o)
		if !ok {
			return nil, nil
		}
		return &part, nil
	}
	p.OnChange(func(key reconcile.Key) {
		if addOn, ok := registration.TokenAddOn(resource, key.Name); ok {
			changed(reconcile.Key{Namespace: key.Namespace, Name: addOn})
		}
	})
	return p
}

// known returns the cached object with this name, which carries the label; nil if there is
// none.
func (p *parts) known(namespace, name string) *registration.TokenPart {
	if part, ok := p.Get(reconcile.Key{Namespace: namespace, Name: name}); ok {
		return &part
	}
	return nil
}

// users holds the instances that use the token driver, by cluster. Its methods are safe for
// concurrent use.
type users struct {
	mu sync.Mutex
	by map[string]map[string]bool
}

func newUsers() *users { return &users{by: map[string]map[string]bool{}} }

func (u *users) record(key reconcile.Key, uses bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	instance.SetMember(u.by, key.Namespace, key.Name, uses)
}

func (u *users) of(cluster string) []reconcile.Key {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []reconcile.Key
	for name := range u.by[cluster] {
		out = append(out, reconcile.Key{Namespace: cluster, Name: name})
	}
	return out
}
