// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// replaced are the kinds that are deleted and recreated when an immutable field is to
// change: their whole content is in the manifest, and nothing is deleted with them.
var replaced = map[ID]bool{
	{Resource: "secrets"}: true,
	{Group: "storage.k8s.io", Resource: "storageclasses"}: true,
	{Group: "storage.k8s.io", Resource: "csidrivers"}:     true,
}

// replaceable reports whether the object may be deleted and recreated: the strategy is
// Update, the API server refused only changes of immutable fields, and this work is the
// object's sole owner. An object that the work has only just found, or shares, is not its
// to delete.
func replaceable(r Request, err error) bool {
	if r.Live == nil || r.NeverReplace || r.Options.Strategy != workv1.UpdateStrategyTypeUpdate || !r.Options.Owned ||
		!replaced[ID{Group: r.Resource.Group, Resource: r.Resource.Resource}] {
		return false
	}
	return len(r.Live.GetOwnerReferences()) == 1 && hasOwner(r.Live, r.Owner.UID) && isImmutable(err)
}

// isImmutable reports whether every cause of a refusal is an immutable field.
func isImmutable(err error) bool {
	causes := detailsOf(err).Causes
	return apierrors.IsInvalid(err) && len(causes) > 0 && !slices.ContainsFunc(causes, func(c metav1.StatusCause) bool {
		return !strings.Contains(c.Message, "field is immutable") && !strings.Contains(c.Message, "updates to ")
	})
}

// admissible asks the API server, by a dry run under an unused name, whether it would
// accept the manifest as a new object.
func (a *Applier) admissible(ctx context.Context, r Request) error {
	r.Live = nil
	body, err := r.body()
	if err != nil {
		return err
	}
	body.SetGenerateName(body.GetName())
	body.SetName("")
	_, err = a.post(ctx, r, body, metav1.CreateOptions{FieldManager: r.Options.Manager, DryRun: []string{metav1.DryRunAll}})
	return err
}

// replace deletes exactly the object that was read and recreates it. If the object waits
// for finalizers, it is created after it is gone. An object whose replacement the API
// server would refuse is not deleted.
func (a *Applier) replace(ctx context.Context, r Request) (Result, error) {
	if err := a.admissible(ctx, r); err != nil {
		return Result{}, fmt.Errorf("a field cannot be changed, and the object was not deleted because the API server would refuse to recreate it: %w", err)
	}
	_, err := a.write(ctx, r, deletionOf(r.Live))
	if err != nil {
		return Result{}, fmt.Errorf("recreating it because a field cannot be changed: %w", err)
	}
	if r.Live, err = a.Observe(ctx, r.Resource, r.Object.GetNamespace(), r.Object.GetName()); err != nil {
		return Result{}, err
	}
	if r.Live != nil && r.Live.GetDeletionTimestamp() != nil {
		return Result{Seen: See(r.Live)}, &DeletingError{finalizers: r.Live.GetFinalizers()}
	}
	live, err := a.patchServerSide(ctx, r)
	if err != nil {
		return Result{}, err
	}
	return Result{Seen: See(live), Live: live, Replaced: true}, nil
}
