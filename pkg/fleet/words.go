// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"slices"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// ClusterNames returns the names of all managed clusters, in one request.
func ClusterNames(ctx context.Context, hub *Cluster) ([]string, error) {
	return words(ctx, hub, query{resource: managedClusters})
}

// SetNames returns the names of all cluster sets, in one request.
func SetNames(ctx context.Context, hub *Cluster) ([]string, error) {
	return words(ctx, hub, query{resource: managedClusterSets})
}

// WorkNames returns the names of all ManifestWorks, each once, in one request.
func WorkNames(ctx context.Context, hub *Cluster) ([]string, error) {
	return words(ctx, hub, query{resource: manifestWorks})
}

// TokenIDs returns the ids of the join tokens, in one request.
func TokenIDs(ctx context.Context, hub *Cluster) ([]string, error) {
	items, err := listAll(ctx, hub, query{resource: secrets, namespace: operatorv1.NamespaceOperator, labels: clusterv1.LabelJoinToken})
	var out []string
	for i := range items {
		out = append(out, items[i].GetLabels()[clusterv1.LabelJoinToken])
	}
	return out, err
}

// PendingNames returns the clusters with a request that waits, in one request.
func PendingNames(ctx context.Context, hub *Cluster) ([]string, error) {
	items, err := listAll(ctx, hub, query{resource: signingRequests, labels: clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName})
	var out []string
	for i := range items {
		if stateOf(&items[i]) == StatePending {
			out = append(out, items[i].GetLabels()[clusterv1.LabelClusterName])
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

func words(ctx context.Context, hub *Cluster, q query) ([]string, error) {
	items, err := listAll(ctx, hub, q)
	var out []string
	for i := range items {
		out = append(out, items[i].GetName())
	}
	slices.Sort(out)
	return slices.Compact(out), err
}
