// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Content is what is cached of a configuration object.
type Content struct {
	// Hash is its SpecHash, Generation its metadata.generation.
	Hash       string
	Generation int64
	// Spec is its spec as JSON.
	Spec string
}

// isKnown reports whether the hub itself reads objects of the kind. Other kinds are read by
// the controller of the add-on.
func isKnown(kind addonv1alpha1.ConfigGroupResource) bool {
	return kind.Group == addonv1alpha1.GroupName &&
		(kind.Resource == addonv1alpha1.ResourceDeploymentConfig || kind.Resource == addonv1alpha1.ResourceTemplate)
}

// Contents caches the content of all objects of the kinds that the hub knows.
type Contents struct {
	kinds   map[addonv1alpha1.ConfigGroupResource]*watch.Collection[Content]
	changed []func(addonv1alpha1.AddOnConfig)
}

// NewContents returns Contents that are empty until Run fills them.
func NewContents(client dynamic.Interface) *Contents {
	c := &Contents{kinds: map[addonv1alpha1.ConfigGroupResource]*watch.Collection[Content]{}}
	for _, resource := range []string{addonv1alpha1.ResourceDeploymentConfig, addonv1alpha1.ResourceTemplate} {
		kind := addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: resource}
		all := watch.New(watch.Options[Content]{
			Client: client, Resource: addonv1alpha1.GroupVersion.WithResource(resource), Keep: content,
			Same: func(before, now Content) bool { return before == now },
		})
		all.OnChange(func(key reconcile.Key) {
			for _, f := range c.changed {
				f(addonv1alpha1.AddOnConfig{ConfigGroupResource: kind, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: key.Namespace, Name: key.Name}})
			}
		})
		c.kinds[kind] = all
	}
	return c
}

func content(u *unstructured.Unstructured) (Content, bool) {
	hash, err := addonkit.SpecHash(u.Object)
	if err != nil {
		return Content{}, false
	}
	spec, err := json.Marshal(u.Object["spec"])
	return Content{Hash: hash, Generation: u.GetGeneration(), Spec: string(spec)}, err == nil
}

// OnChange registers a function that is called for each object that is created or deleted or
// whose content changes. OnChange must be called before Run, and the function must not block.
func (c *Contents) OnChange(f func(addonv1alpha1.AddOnConfig)) { c.changed = append(c.changed, f) }

// Run keeps the contents up to date until ctx is done.
func (c *Contents) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, kind := range c.kinds {
		running.Go(func() { _ = kind.Run(ctx) })
	}
	running.Wait()
	return nil
}

// WaitSynced waits until all existing objects are cached.
func (c *Contents) WaitSynced(ctx context.Context) error {
	for _, kind := range c.kinds {
		if err := kind.WaitSynced(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Get returns the content of an object; false if it does not exist.
func (c *Contents) Get(ref addonv1alpha1.AddOnConfig) (Content, bool) {
	all := c.kinds[ref.ConfigGroupResource]
	if all == nil {
		return Content{}, false
	}
	return all.Get(reconcile.Key{Namespace: ref.Namespace, Name: ref.Name})
}
