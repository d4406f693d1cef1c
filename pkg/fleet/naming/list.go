// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"context"
	"slices"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
)

// AddOns returns the names of all add-ons, in one request.
func AddOns(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	return words(ctx, hub, fleet.Query{Resource: fleet.ManagementAddOns})
}

// Clusters returns the names of all managed clusters, in one request.
func Clusters(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	return words(ctx, hub, fleet.Query{Resource: fleet.ManagedClusters})
}

// Sets returns the names of all cluster sets, in one request.
func Sets(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	return words(ctx, hub, fleet.Query{Resource: fleet.ManagedClusterSets})
}

// Works returns the names of all ManifestWorks, each once, in one request.
func Works(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	return words(ctx, hub, fleet.Query{Resource: fleet.ManifestWorks})
}

// Tokens returns the ids of the join tokens, in one request.
func Tokens(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	items, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.Secrets, Namespace: operatorv1.NamespaceOperator, Labels: clusterv1.LabelJoinToken})
	var out []string
	for i := range items {
		out = append(out, items[i].GetLabels()[clusterv1.LabelJoinToken])
	}
	return out, err
}

// Pending returns the clusters with a pending request, in one request.
func Pending(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	items, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.SigningRequests, Labels: clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName})
	var out []string
	for i := range items {
		if request.StateOf(&items[i]) == request.StatePending {
			out = append(out, items[i].GetLabels()[clusterv1.LabelClusterName])
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

func words(ctx context.Context, hub *fleet.Cluster, q fleet.Query) ([]string, error) {
	items, err := fleet.ListAll(ctx, hub, q)
	var out []string
	for i := range items {
		out = append(out, items[i].GetName())
	}
	slices.Sort(out)
	return slices.Compact(out), err
}
