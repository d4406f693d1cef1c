// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
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
