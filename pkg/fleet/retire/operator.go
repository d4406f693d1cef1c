// SPDX-License-Identifier: Apache-2.0

package retire

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/operator"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// operatorLock is the lease of the operator.
const operatorLock = "klusterlet-lock"

// Installed returns the namespace of an operator that a join installed; nil without one, and for one
// that others installed, which stays. The mark on the namespace is the last that a removal removes.
func Installed(ctx context.Context, c *fleet.Cluster) (*unstructured.Unstructured, error) {
	namespace, err := c.Client.Resource(fleet.Namespaces).Get(ctx, operatorv1.NamespaceOperator, fleet.GetOptions)
	if apierrors.IsNotFound(err) || (err == nil && namespace.GetLabels()[operatorv1.LabelKlusterletOperator] != fleet.FieldManager) {
		return nil, nil
	}
	return namespace, fleet.Explain("reading namespace "+operatorv1.NamespaceOperator, c, err)
}

// Operator removes the operator of a namespace that Installed returned. The definition of klusterlets
// stays if there are Klusterlets left, which keep true says. It can be repeated after any failure.
func Operator(ctx context.Context, r *fleet.Run, c *fleet.Cluster, namespace *unstructured.Unstructured, keep bool) error {
	d, err := member.Operator(ctx, c)
	if err == nil && d != nil {
		err = workload.End(ctx, r, c, d)
	}
	if err != nil {
		return err
	}
	objects, err := operator.Objects("-")
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(objects) {
		if o.GetKind() == "Namespace" || (keep && o.GetKind() == "CustomResourceDefinition") {
			continue
		}
		live, err := write.Live(ctx, c, o)
		if err == nil && live != nil {
			err = fleet.Remove(ctx, c, live)
		}
		if err != nil {
			return fleet.Explain("removing "+fleet.Describe(o), c, err)
		}
	}
	return removeNamespace(ctx, r, c, namespace)
}

// removeNamespace deletes the namespace of the operator, unless a hub or others have something in it.
func removeNamespace(ctx context.Context, r *fleet.Run, c *fleet.Cluster, namespace *unstructured.Unstructured) error {
	foreign, err := fleet.Foreign(ctx, c, namespace.GetName(), func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Lease" && o.GetName() == operatorLock
	})
	if err != nil {
		return err
	}
	if len(foreign) > 0 || namespace.GetLabels()[operatorv1.LabelCreatedByClusterManager] != "" {
		_, err := c.Client.Resource(fleet.Namespaces).Patch(ctx, namespace.GetName(), types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, operatorv1.LabelKlusterletOperator), metav1.PatchOptions{FieldManager: fleet.FieldManager})
		return fleet.Explain("giving up namespace "+namespace.GetName(), c, err)
	}
	if err := fleet.Remove(ctx, c, namespace); err != nil {
		return fleet.Explain("removing namespace "+namespace.GetName(), c, err)
	}
	q := await.Query{Client: c.Client, Resource: fleet.Namespaces, Name: namespace.GetName(), Clock: r.Given.Clock}
	err = await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		return len(items) == 0 || items[0].GetUID() != namespace.GetUID(), nil
	})
	return r.TimedOut(ctx, err, "namespace "+namespace.GetName()+" to be gone", nil)
}
