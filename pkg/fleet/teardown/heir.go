// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// neighbor returns another Klusterlet of this cluster that is not being deleted; empty without one.
func (a *agentRemoval) neighbor(ctx context.Context) (string, error) {
	return a.klusterletLike(ctx, func(*unstructured.Unstructured) bool { return true })
}

func (a *agentRemoval) klusterletLike(ctx context.Context, like func(*unstructured.Unstructured) bool) (string, error) {
	remaining, err := list(ctx, a.client, klusterlets, "", "")
	for _, k := range remaining {
		if k.GetName() != a.name && k.GetDeletionTimestamp() == nil && like(k) {
			return k.GetName(), nil
		}
	}
	return "", err
}

// heir returns another Klusterlet whose agent manages this cluster and that is not being deleted;
// empty without one. Its agent needs what all agents share: the definitions, whose objects would go
// with them, and the namespace of add-ons.
func (a *agentRemoval) heir(ctx context.Context) (string, error) {
	heir, err := a.klusterletLike(ctx, func(k *unstructured.Unstructured) bool {
		mode, _, _ := unstructured.NestedString(k.Object, "spec", "deployOption", "mode")
		return !operatorv1.InstallMode(mode).IsHosted()
	})
	if err != nil || heir != "" {
		return heir, err
	}
	agents, err := list(ctx, a.client, namespaces, "", operatorv1.LabelKlusterlet)
	if err != nil {
		return "", err
	}
	for _, ns := range agents {
		other := ns.GetLabels()[operatorv1.LabelKlusterlet]
		if other == a.name || ns.GetName() == a.o.Namespace || ns.GetDeletionTimestamp() != nil {
			continue
		}
		// The Klusterlet of a hosted agent is on another cluster; one that is here is leaving, or
		// manages another cluster.
		k, err := get(ctx, a.client.Resource(klusterlets), other, "klusterlet "+other)
		if err != nil || k == nil {
			return other, err
		}
	}
	return "", nil
}

// bequeath labels an object that all agents share as the heir's; false without an heir. An heir
// that is being deleted by now may have looked at the object before: then it is taken back.
func (a *agentRemoval) bequeath(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured,
	next func(context.Context) (string, error)) (bool, error) {
	for {
		heir, err := next(ctx)
		if err != nil || heir == "" {
			return false, err
		}
		if err := a.relabel(ctx, resource, live.GetName(), heir); err != nil {
			return false, err
		}
		if again, err := next(ctx); err != nil || again == heir {
			return err == nil, err
		}
		if err := a.relabel(ctx, resource, live.GetName(), a.name); err != nil {
			return false, err
		}
	}
}

// relabel labels an object as a Klusterlet's.
func (a *agentRemoval) relabel(ctx context.Context, resource schema.GroupVersionResource, name, klusterlet string) error {
	live, err := get(ctx, a.client.Resource(resource), name, resource.Resource+" "+name)
	if err != nil || live == nil {
		return err
	}
	return a.patch(ctx, resource, live, map[string]any{"labels": map[string]any{operatorv1.LabelCreatedByKlusterlet: klusterlet}})
}

// disown removes our label and version from an object that stays.
func (a *agentRemoval) disown(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured) error {
	return a.patch(ctx, resource, live, map[string]any{
		"labels":      map[string]any{operatorv1.LabelCreatedByKlusterlet: nil, operatorv1.LabelKlusterlet: nil},
		"annotations": map[string]any{operatorv1.AnnotationVersion: nil},
	})
}
