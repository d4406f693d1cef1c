// SPDX-License-Identifier: Apache-2.0

package unjoin

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/retire"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// removeOperator removes the operator that a join installed, after the last agent that it may have to
// run. One that others installed stays.
func (u *unjoin) removeOperator(ctx context.Context) error {
	namespace, err := u.idleOperator(ctx)
	if err != nil || namespace == nil {
		return err
	}
	u.Step("operator removed")
	if err := retire.Operator(ctx, u.Run, u.Spoke, namespace, false); err != nil {
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
	namespace, err := retire.Installed(ctx, u.Spoke)
	if err != nil || namespace == nil {
		return nil, err
	}
	left, err := u.Spoke.Client.Resource(fleet.Klusterlets).List(ctx, metav1.ListOptions{Limit: 1})
	if (err == nil && len(left.Items) > 0) || (err != nil && !apierrors.IsNotFound(err)) {
		return nil, fleet.Explain("listing klusterlets", u.Spoke, err)
	}
	return namespace, nil
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
