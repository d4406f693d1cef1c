// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// Layouts of a hub: one process, or an operator that runs a Deployment for each part.
const (
	LayoutCompact = hub.LayoutCompact
	LayoutSplit   = hub.LayoutSplit
)

// LayoutOf returns the layout of the hub that a Deployment runs; compact for none.
func LayoutOf(d *appsv1.Deployment) string {
	if d != nil {
		for i := range d.Spec.Template.Spec.Containers {
			if c := &d.Spec.Template.Spec.Containers[i]; c.Name == d.Name && slices.Contains(c.Args, "operator") {
				return LayoutSplit
			}
		}
	}
	return LayoutCompact
}

// KeepsAPIs reports whether the hub that a Deployment runs, ours or that of another distribution, leaves
// its APIs in place when it is removed.
func KeepsAPIs(d *appsv1.Deployment) bool {
	return d != nil && slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Args, func(arg string) bool { return arg == hub.FlagKeepAPIs || arg == hub.FlagKeepAPIs+"=true" })
	})
}

// keepArguments keeps of the hub that is there what its removal leaves in place and, unless another
// is given, the layout.
func (o *InitOptions) keepArguments(ctx context.Context) error {
	d, err := Deployment(ctx, o.Hub)
	o.KeepAPIs = o.KeepAPIs || KeepsAPIs(d)
	if o.Layout == "" {
		o.Layout = LayoutOf(d)
	}
	return err
}

// admissionHook is the configuration that shows where admission is served.
const admissionHook = "managedclustermutators.admission.cluster.open-cluster-management.io"

// waitLayout waits until a hub that had the other layout has been switched: admission is
// served where the layout serves it, and in the compact layout no component is left.
func (o *InitOptions) waitLayout(ctx context.Context, r *fleet.Run) error {
	wanted := operatorv1.NamespaceOperator
	if o.Layout == LayoutSplit {
		wanted = operatorv1.NamespaceHub
	}
	err := await.True(ctx, r.Given.Clock, write.ServedPause, func(ctx context.Context) (bool, error) {
		live, err := o.Hub.Client.Resource(fleet.MutatingHooks).Get(ctx, admissionHook, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fleet.Explain("reading the configuration of admission", o.Hub, err)
		}
		if !servedIn(live, wanted) {
			return false, nil
		}
		components, err := ownComponents(ctx, o.Hub)
		return len(components) > 0 == (o.Layout == LayoutSplit), err
	})
	return r.TimedOut(ctx, err, "the "+o.Layout+" layout", o.managerBlocker)
}

func servedIn(hook *unstructured.Unstructured, namespace string) bool {
	all, _, _ := unstructured.NestedSlice(hook.Object, "webhooks")
	return !slices.ContainsFunc(all, func(w any) bool {
		m, _ := w.(map[string]any)
		at, _, _ := unstructured.NestedString(m, "clientConfig", "service", "namespace")
		return at != namespace
	})
}

// ownComponents returns the Deployments of this project's split layout.
func ownComponents(ctx context.Context, c *fleet.Cluster) ([]unstructured.Unstructured, error) {
	all, err := fleet.ListAll(ctx, c, fleet.Query{Resource: fleet.Deployments, Namespace: operatorv1.NamespaceHub})
	if err != nil {
		return nil, fleet.Explain("looking for components of the hub", c, err)
	}
	return slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return !teardown.IsHubComponent(&u) }), nil
}

// prune removes what the other layout needs and this one does not, and returns it.
func (o *InitOptions) prune(ctx context.Context) ([]fleet.Change, error) {
	if o.Layout == LayoutSplit {
		return nil, nil // the operator removes the rest itself
	}
	mine, err := hub.Objects(hub.Options{Version: o.Version})
	if err != nil {
		return nil, err
	}
	others, err := hub.Objects(hub.Options{Version: o.Version, Layout: LayoutSplit})
	if err != nil {
		return nil, err
	}
	var out []fleet.Change
	for _, u := range others {
		if slices.ContainsFunc(mine, func(m *unstructured.Unstructured) bool { return fleet.Describe(m) == fleet.Describe(u) }) {
			continue
		}
		live, err := write.Live(ctx, o.Hub, u)
		if err != nil {
			return out, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
		}
		if live == nil || live.GetLabels()[operatorv1.LabelCreatedByClusterManager] != operatorv1.DefaultClusterManagerName {
			continue
		}
		uid := live.GetUID()
		err = o.Hub.Client.Resource(fleet.ResourceOf(u)).Namespace(u.GetNamespace()).Delete(ctx, u.GetName(),
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return out, fleet.Explain("deleting "+fleet.Describe(u), o.Hub, err)
		}
		out = append(out, fleet.Change{Object: fleet.Reference(live), Action: fleet.Deleted})
	}
	return out, nil
}
