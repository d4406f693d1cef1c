// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
)

// ListOptions say on which hub to list tokens.
type ListOptions struct {
	fleet.Common
	// Hub is where the tokens are.
	Hub *fleet.Cluster
}

// List lists the join tokens of a hub, by id. It sends four requests.
func List(ctx context.Context, o ListOptions) ([]request.Token, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	tokens, err := request.Tokens(ctx, o.Hub, r.Now())
	if err != nil {
		return nil, err
	}
	requests, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.SigningRequests, Labels: clusterv1.LabelClusterName})
	if err != nil {
		return nil, fleet.Explain("listing certificate requests", o.Hub, err)
	}
	clusters, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManagedClusters})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fleet.Explain("listing managedclusters", o.Hub, err)
	}
	for i := range tokens {
		tokens[i].Count(requests, clusters)
	}
	return tokens, nil
}

// RevokeOptions say which token to revoke.
type RevokeOptions struct {
	fleet.Common
	// Hub is where the token is valid.
	Hub *fleet.Cluster
	// ID is the id that List shows.
	ID string
}

// Revoke revokes a token (the API server may cache it for ten seconds) and denies pending
// requests that were made with it. Clusters that have joined are not affected.
func Revoke(ctx context.Context, o RevokeOptions) ([]fleet.Change, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	tokens, err := request.Tokens(ctx, o.Hub, r.Now())
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tokens, func(t request.Token) bool { return t.ID == o.ID })
	if i < 0 {
		return nil, naming.NoToken(o.ID, o.Hub)
	}
	out := []fleet.Change{{Object: fleet.Reference(tokens[i].Object), Action: fleet.Deleted}}
	if o.Reads() {
		return out, nil
	}
	if err := fleet.Remove(ctx, o.Hub, tokens[i].Object); err != nil {
		return nil, fleet.Explain("deleting the token's secret", o.Hub, err)
	}
	requests, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.SigningRequests, Labels: clusterv1.LabelClusterName})
	if err != nil {
		return out, fleet.Explain("listing certificate requests", o.Hub, err)
	}
	for j := range requests {
		if csr := &requests[j]; tokens[i].Used(csr) && !request.Answered(csr) {
			err := request.Answer(ctx, o.Hub, csr, request.Denial(clusterv1.ReasonTokenRevoked,
				fmt.Sprintf("it was sent with join token %s, which was revoked; make one for this cluster on the hub, and join with it", o.ID), r.Now()))
			if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
				continue // the hub denies them too, and was faster
			}
			if err != nil {
				return out, fleet.Explain("denying "+csr.GetName(), o.Hub, err)
			}
			out = append(out, fleet.Change{Object: fleet.Reference(csr), Action: fleet.Configured})
		}
	}
	return out, nil
}

// clearExpired deletes the Secrets of expired tokens. What fails is left for the next time.
func clearExpired(ctx context.Context, hub *fleet.Cluster, now time.Time) {
	tokens, err := request.Tokens(ctx, hub, now)
	if err != nil {
		return
	}
	for i := range tokens {
		if tokens[i].Expired {
			_ = fleet.Remove(ctx, hub, tokens[i].Object)
		}
	}
}
