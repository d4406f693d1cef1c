// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
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
func isKnown(kind addonv1alpha1.ConfigGroupResource) bool { return slices.Contains(knownKinds, kind) }

var knownKinds = []addonv1alpha1.ConfigGroupResource{
	{Group: addonv1alpha1.GroupName, Resource: addonv1alpha1.ResourceDeploymentConfig},
	{Group: addonv1alpha1.GroupName, Resource: addonv1alpha1.ResourceTemplate},
}

// Contents caches the content of all objects of the kinds that the hub knows.
type Contents struct {
	kinds   map[addonv1alpha1.ConfigGroupResource]*watch.Collection[Content]
	changed []func(addonv1alpha1.AddOnConfig)
}

// NewContents returns Contents that are empty until m runs.
func NewContents(m *manager.Manager, client dynamic.Interface) *Contents {
	c := &Contents{kinds: map[addonv1alpha1.ConfigGroupResource]*watch.Collection[Content]{}}
	for _, kind := range knownKinds {
		all := watch.New(watch.Options[Content]{
			Client: client, Resource: addonv1alpha1.GroupVersion.WithResource(kind.Resource), Keep: content,
			Same: func(before, now Content) bool { return before == now },
		})
		all.OnChange(func(key reconcile.Key) {
			for _, f := range c.changed {
				f(addonv1alpha1.AddOnConfig{ConfigGroupResource: kind, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: key.Namespace, Name: key.Name}})
			}
		})
		m.AddTask(all.Run)
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
// whose content changes. OnChange must be called before the manager runs, and the function
// must not block.
func (c *Contents) OnChange(f func(addonv1alpha1.AddOnConfig)) { c.changed = append(c.changed, f) }

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
	if !isKnown(ref.ConfigGroupResource) {
		return Content{}, false
	}
	return c.kinds[ref.ConfigGroupResource].Get(reconcile.Key{Namespace: ref.Namespace, Name: ref.Name})
}
