// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// installedObjects returns the objects that an installer applies for a hub, without the
// ClusterManager itself.
func installedObjects(c Config) ([]operatorv1.RelatedResourceMeta, error) {
	objects, err := hub.Objects(c.installed())
	if err != nil {
		return nil, err
	}
	var out []operatorv1.RelatedResourceMeta
	for _, u := range objects {
		if u.GetKind() == "ClusterManager" {
			continue
		}
		out = append(out, relatedTo(u))
	}
	return out, nil
}

// installed are the options with which an installer applied what this process keeps.
func (c Config) installed() hub.Options {
	o := hub.Options{Version: c.Version, Hosted: c.Hosted}
	if c.Split != nil {
		o.Layout = hub.LayoutSplit
	}
	return o
}

func relatedTo(u *unstructured.Unstructured) operatorv1.RelatedResourceMeta {
	resource := reconcile.ResourceOf(u.GroupVersionKind())
	return operatorv1.RelatedResourceMeta{
		Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Namespace: u.GetNamespace(), Name: u.GetName(),
	}
}

// setInventory sets the related resources of the hub and the generation of its Deployment in
// the status.
func setInventory(s State, cm *operatorv1.ClusterManager, f Features) {
	out := append([]operatorv1.RelatedResourceMeta{}, s.Installed...)
	for _, d := range s.Definitions {
		out = append(out, operatorv1.RelatedResourceMeta{Group: definitionsResource.Group, Version: "v1", Resource: definitionsResource.Resource, Name: d.Name})
	}
	for _, h := range hooks {
		resource := validatingResource
		if h.mutating {
			resource = mutatingResource
		}
		out = append(out, operatorv1.RelatedResourceMeta{Group: resource.Group, Version: "v1", Resource: resource.Resource, Name: h.name})
	}
	names := []string{operatorv1.SecretSigner}
	secrets := servingSecrets()
	for _, name := range servingNames(f) {
		names = append(names, secrets[name])
	}
	for _, name := range names {
		out = append(out, operatorv1.RelatedResourceMeta{Version: "v1", Resource: "secrets", Namespace: hub.ComponentNamespace, Name: name})
	}
	cm.Status.RelatedResources = append(out, operatorv1.RelatedResourceMeta{
		Version: "v1", Resource: "configmaps", Namespace: hub.ComponentNamespace, Name: operatorv1.ConfigMapCABundle,
	})
	cm.Status.Generations = nil
	if s.Deployment > 0 {
		cm.Status.Generations = []operatorv1.GenerationStatus{{
			Group: "apps", Version: "v1", Resource: "deployments", Namespace: hub.Namespace, Name: hub.Name, LastGeneration: s.Deployment,
		}}
	}
	for _, c := range s.Components {
		if c.Found {
			cm.Status.Generations = append(cm.Status.Generations, operatorv1.GenerationStatus{
				Group: "apps", Version: "v1", Resource: "deployments", Namespace: hub.ComponentNamespace, Name: c.Name, LastGeneration: c.Generation,
			})
		}
	}
}
