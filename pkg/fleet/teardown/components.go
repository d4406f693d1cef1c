// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var (
	budgets         = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	networkPolicies = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
)

// IsHubComponent reports whether a Deployment is one of the split layout of this project's
// hub. Those of other distributions do not carry the version.
func IsHubComponent(d metav1.Object) bool {
	return d.GetLabels()[operatorv1.LabelCreatedByClusterManager] == operatorv1.DefaultClusterManagerName &&
		d.GetAnnotations()[operatorv1.AnnotationVersion] != ""
}

// HubComponents removes the components of the split layout, as far as it can without waiting:
// their Deployments, and what they had when all pods have ended. It returns what it waits for.
// The compact hub calls it before it starts its loops.
func HubComponents(ctx context.Context, client dynamic.Interface) (string, error) {
	return newHubRemoval(client, HubOptions{}).split(ctx)
}

func (h *hubRemoval) split(ctx context.Context) (string, error) {
	ns, err := get(ctx, h.client.Resource(namespaces), operatorv1.NamespaceHub, "namespace "+operatorv1.NamespaceHub)
	if err != nil {
		return "", err
	}
	if ns == nil || ns.GetDeletionTimestamp() != nil { // then all in it goes, and the rights there
		return "", h.componentObjects(ctx, true)
	}
	all, err := list(ctx, h.client, deployments, operatorv1.NamespaceHub, operatorv1.LabelCreatedByClusterManager)
	if err != nil {
		return "", err
	}
	var left []*unstructured.Unstructured
	for _, d := range all {
		if !IsHubComponent(d) {
			continue
		}
		left = append(left, d)
		if err := EndDeployment(ctx, h.client, d.GetNamespace(), d.GetName(), d.GetUID()); err != nil && d.GetDeletionTimestamp() == nil {
			return "", err
		}
	}
	if len(left) > 0 {
		return describeObjects("Deployments of the split layout", left), nil
	}
	return "", h.componentObjects(ctx, false)
}

// componentObjects deletes what the components had, and only what is in no namespace if theirs
// is going. A Service that leads elsewhere is that of the compact layout.
func (h *hubRemoval) componentObjects(ctx context.Context, going bool) error {
	var errs []error
	for _, component := range hub.ComponentNames {
		objects, err := hub.Component(component)
		if err != nil {
			return err
		}
		for _, u := range objects {
			resource := reconcile.ResourceOf(u.GroupVersionKind())
			if going && u.GetNamespace() != "" {
				continue
			}
			if resource == services {
				live, err := get(ctx, h.client.Resource(services).Namespace(u.GetNamespace()), u.GetName(), "service "+u.GetName())
				if kind, _, _ := unstructured.NestedString(objectOf(live), "spec", "type"); err != nil || live == nil || kind == "ExternalName" {
					errs = append(errs, err)
					continue
				}
			}
			errs = append(errs, removeNamed(ctx, h.client, resource, u.GetNamespace(), u.GetName()))
		}
		if !going {
			errs = append(errs, removeNamed(ctx, h.client, budgets, operatorv1.NamespaceHub, operatorv1.DefaultClusterManagerName+"-"+component))
		}
	}
	if !going {
		errs = append(errs, h.policies(ctx), h.pullSecret(ctx))
	}
	return errors.Join(errs...)
}

// policies deletes the NetworkPolicies of the components, unless somebody else made them: the one
// that denies everything first.
func (h *hubRemoval) policies(ctx context.Context) error {
	all, err := hub.Policies()
	errs := []error{err}
	for _, u := range slices.Backward(all) {
		errs = append(errs, h.own(ctx, networkPolicies, u.GetName()))
	}
	return errors.Join(errs...)
}

// own deletes an object in the namespace of the components, unless somebody else made it.
func (h *hubRemoval) own(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	live, err := get(ctx, h.client.Resource(resource).Namespace(operatorv1.NamespaceHub), name, resource.Resource+" "+name)
	if err != nil || live == nil || live.GetLabels()[operatorv1.LabelCreatedByClusterManager] != operatorv1.DefaultClusterManagerName {
		return err
	}
	return remove(ctx, h.client, resource, live)
}

func objectOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return u.Object
}

// pullSecret deletes the copy of the credentials for images, unless somebody else made it.
func (h *hubRemoval) pullSecret(ctx context.Context) error {
	return h.own(ctx, secrets, operatorv1.SecretImagePull)
}
