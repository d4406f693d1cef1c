// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Resources that hubs and agents consist of.
var (
	namespaces          = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secrets             = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configMaps          = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services            = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	pods                = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	serviceAccounts     = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	deployments         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	leases              = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	roles               = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	roleBindings        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	clusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterBindings     = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	definitions         = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices         = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	validatingWebhooks  = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	mutatingWebhooks    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	clusterManagers     = operatorv1.GroupVersion.WithResource("clustermanagers")
	klusterlets         = operatorv1.GroupVersion.WithResource("klusterlets")
	managedClusters     = clusterv1.GroupVersion.WithResource("managedclusters")
	clusterClaims       = clusterv1alpha1.GroupVersion.WithResource("clusterclaims")
	managedAddOns       = addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")
	manifestWorks       = workv1.GroupVersion.WithResource("manifestworks")
	appliedWorks        = workv1.GroupVersion.WithResource("appliedmanifestworks")
	manifestWorkReplica = workv1alpha1.GroupVersion.WithResource("manifestworkreplicasets")
)

// failed says what failed; nil stays nil.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// get reads an object, which an error calls what; nil when there is none.
func get(ctx context.Context, api dynamic.ResourceInterface, name, what string) (*unstructured.Unstructured, error) {
	live, err := api.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	return live, nil
}

// pageSize is the page size of lists.
const pageSize = 500

// objects yields all objects that a label selector selects, reading page by page; a kind that
// is not served has none. An error is the last that it yields.
func objects(ctx context.Context, api dynamic.ResourceInterface, selector string) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for u, err := range typed.All(ctx, api, metav1.ListOptions{LabelSelector: selector, Limit: pageSize}) {
			if apierrors.IsNotFound(err) || !yield(u, err) {
				return
			}
		}
	}
}

// list reads all objects that a label selector selects; an empty namespace means all.
func list(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource,
	namespace, selector string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for u, err := range objects(ctx, client.Resource(resource).Namespace(namespace), selector) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		out = append(out, u)
	}
	return out, nil
}

// remove deletes the very object that was read.
func remove(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, u *unstructured.Unstructured) error {
	if u.GetDeletionTimestamp() != nil {
		return nil
	}
	return reconcile.Delete(ctx, client, reconcile.Target{Resource: resource, Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID()})
}

// removeNamed deletes objects by name.
func removeNamed(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string, names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, reconcile.Delete(ctx, client, reconcile.Target{Resource: resource, Namespace: namespace, Name: name}))
	}
	return errors.Join(errs...)
}

// merge merges the fields into the metadata of the very object that was read. It is no error
// when the object is gone.
func merge(ctx context.Context, api dynamic.ResourceInterface, live *unstructured.Unstructured, fields map[string]any) error {
	fields["uid"], fields["resourceVersion"] = live.GetUID(), live.GetResourceVersion()
	body, err := json.Marshal(map[string]any{"metadata": fields})
	if err != nil {
		return err
	}
	_, err = api.Patch(ctx, live.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
	return notFoundIsNil(err)
}

// release removes the named finalizers from the very object that was read.
func release(ctx context.Context, api dynamic.ResourceInterface, live *unstructured.Unstructured, finalizers ...string) error {
	kept := slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return slices.Contains(finalizers, f) })
	if len(kept) == len(live.GetFinalizers()) {
		return nil
	}
	return merge(ctx, api, live, map[string]any{"finalizers": kept})
}

func notFoundIsNil(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func number(object map[string]any, path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(object, path...)
	return n
}
