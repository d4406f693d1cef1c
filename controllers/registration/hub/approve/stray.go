// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// maxStrays is how many requests for clusters that do not exist are kept. An agent
	// creates its ManagedCluster before it asks or soon after; anyone with a join token may
	// ask for any number of names, and each name is a crowd of its own (leftover.go).
	maxStrays = 500
	// maxSwept is how many of them one pass deletes.
	maxSwept = 200
)

// strays is the key of the pass over them; no cluster key has a namespace.
var strays = reconcile.Key{Namespace: "*", Name: "strays"}

// sweepStrays deletes the oldest requests for clusters that do not exist beyond maxStrays. An
// agent that still waits for one of them asks again.
func (c *Controller) sweepStrays(ctx context.Context) (reconcile.Result, error) {
	var found []Request
	for _, cluster := range c.requests.Clusters() {
		err := c.reader.Get(ctx, reconcile.Key{Name: cluster}, &clusterv1.ManagedCluster{}, manager.NotCopied)
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return reconcile.Result{}, fmt.Errorf("reading managedcluster %s: %w", cluster, err)
		}
		found = append(found, c.requests.Of(cluster)...)
	}
	surplus := surplusOf(found)
	result := reconcile.Result{}
	if len(surplus) > maxSwept {
		surplus, result.RequeueAfter = surplus[:maxSwept], time.Millisecond
	}
	var errs []error
	for _, csr := range surplus {
		errs = append(errs, c.deleteRequest(ctx, csr))
	}
	return result, errors.Join(errs...)
}

// surplusOf returns which of the requests of nonexistent clusters to delete, oldest first.
// Requests that were approved, or may have another purpose, are not counted and stay.
func surplusOf(found []Request) []*certificatesv1.CertificateSigningRequest {
	found = slices.DeleteFunc(slices.Clone(found), func(r Request) bool {
		return r.CSR.DeletionTimestamp != nil || findCondition(r.CSR, certificatesv1.CertificateApproved) != nil || (r.Fault != nil && originOf(r) == person)
	})
	slices.SortFunc(found, inOrder)
	var out []*certificatesv1.CertificateSigningRequest
	for _, r := range found[:max(len(found)-maxStrays, 0)] {
		out = append(out, r.CSR)
	}
	return out
}
