// SPDX-License-Identifier: Apache-2.0

package unjoin

import (
	"context"
	"fmt"
	"slices"
	"time"

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

// removeOperator removes the operator that was installed for hosted agents, after the last agent
// that it may have to run. One that others installed stays.
func (u *unjoin) removeOperator(ctx context.Context) error {
	namespace, err := u.idleOperator(ctx)
	if err != nil || namespace == nil {
		return err
	}
	u.Step("operator removed")
	if err := u.removeOperatorObjects(ctx); err != nil {
		return err
	}
	if err := u.removeOperatorNamespace(ctx, namespace); err != nil {
		return err
	}
	u.Done("it had no agent left to run")
	return nil
}

// idleOperator returns the namespace of an operator that is to be removed; nil if none is.
func (u *unjoin) idleOperator(ctx context.Context) (*unstructured.Unstructured, error) {
	if u.agent == nil {
		return nil, nil
	}
	namespace, err := u.Spoke.Client.Resource(fleet.Namespaces).Get(ctx, operatorv1.NamespaceOperator, fleet.GetOptions)
	if apierrors.IsNotFound(err) || (err == nil && namespace.GetLabels()[operatorv1.LabelKlusterletOperator] != fleet.FieldManager) {
		return nil, nil
	}
	if err != nil {
		return nil, fleet.Explain("reading namespace "+operatorv1.NamespaceOperator, u.Spoke, err)
	}
	left, err := u.Spoke.Client.Resource(fleet.Klusterlets).List(ctx, metav1.ListOptions{Limit: 1})
	if (err == nil && len(left.Items) > 0) || (err != nil && !apierrors.IsNotFound(err)) {
		return nil, fleet.Explain("listing klusterlets", u.Spoke, err)
	}
	return namespace, nil
}

func (u *unjoin) removeOperatorObjects(ctx context.Context) error {
	d, err := member.Operator(ctx, u.Spoke)
	if err == nil && d != nil {
		err = workload.End(ctx, u.Run, u.Spoke, d)
	}
	if err != nil {
		return err
	}
	objects, err := operator.Objects("-")
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(objects) {
		live, err := write.Live(ctx, u.Spoke, o)
		if err == nil && live != nil && o.GetKind() != "Namespace" {
			err = fleet.Remove(ctx, u.Spoke, live)
		}
		if err != nil {
			return fleet.Explain("removing "+fleet.Describe(o), u.Spoke, err)
		}
	}
	return nil
}

// giveUpManaged tells the operator not to wait for a managed cluster that is out of reach.
func (u *unjoin) giveUpManaged(ctx context.Context) error {
	if !u.unreached {
		return nil
	}
	k := fleet.Named(operatorv1.GroupVersion.WithKind("Klusterlet"), "", u.klusterlet())
	k.SetAnnotations(map[string]string{
		operatorv1.AnnotationManagedResourcesEvictionTimestamp: u.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
	})
	if _, err := write.Merge(ctx, u.Run, u.Spoke, k); err != nil && !apierrors.IsNotFound(err) {
		return fleet.Explain("giving up the managed cluster", u.Spoke, err)
	}
	u.Remark("managed cluster", "it is out of reach, and left as it is")
	return nil
}

// operatorLock is the lease of the operator.
const operatorLock = "klusterlet-lock"

// removeOperatorNamespace deletes the namespace of the operator, unless a hub or others have
// something in it.
func (u *unjoin) removeOperatorNamespace(ctx context.Context, namespace *unstructured.Unstructured) error {
	foreign, err := foreignObjects(ctx, u.Spoke, namespace.GetName(), func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Lease" && o.GetName() == operatorLock
	})
	if err != nil {
		return err
	}
	if len(foreign) > 0 || namespace.GetLabels()[operatorv1.LabelCreatedByClusterManager] != "" {
		_, err := u.Spoke.Client.Resource(fleet.Namespaces).Patch(ctx, namespace.GetName(), types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, operatorv1.LabelKlusterletOperator), metav1.PatchOptions{FieldManager: fleet.FieldManager})
		return fleet.Explain("giving up namespace "+namespace.GetName(), u.Spoke, err)
	}
	if err := fleet.Remove(ctx, u.Spoke, namespace); err != nil {
		return fleet.Explain("removing namespace "+namespace.GetName(), u.Spoke, err)
	}
	q := await.Query{Client: u.Spoke.Client, Resource: fleet.Namespaces, Name: namespace.GetName(), Clock: u.Given.Clock}
	err = await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		return len(items) == 0 || items[0].GetUID() != namespace.GetUID(), nil
	})
	return u.TimedOut(ctx, err, "namespace "+namespace.GetName()+" to be gone", nil)
}
