// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
)

var nameOf = (*unstructured.Unstructured).GetName

// AddOns returns the names of all add-ons, in one request.
func AddOns(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	return words(ctx, hub, fleet.Query{Resource: fleet.ManagementAddOns}, nameOf)
}

// Clusters returns the names of all managed clusters, in one request.
func Clusters(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	return words(ctx, hub, fleet.Query{Resource: fleet.ManagedClusters}, nameOf)
}

// Namespaces returns the names of all namespaces, in one request.
func Namespaces(ctx context.Context, c *fleet.Cluster) ([]string, error) {
	return words(ctx, c, fleet.Query{Resource: fleet.Namespaces}, nameOf)
}

// Sets returns the names of all cluster sets, in one request.
func Sets(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	return words(ctx, hub, fleet.Query{Resource: fleet.ManagedClusterSets}, nameOf)
}

// Works returns the names of all ManifestWorks, each once, in one request.
func Works(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	return words(ctx, hub, fleet.Query{Resource: fleet.ManifestWorks}, nameOf)
}

// PlacedWorks returns the works of all clusters as CLUSTER/NAME, in one request.
func PlacedWorks(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	return words(ctx, hub, fleet.Query{Resource: fleet.ManifestWorks}, func(u *unstructured.Unstructured) string { return u.GetNamespace() + "/" + u.GetName() })
}

// Tokens returns the ids of the join tokens, in one request.
func Tokens(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	q := fleet.Query{Resource: fleet.Secrets, Namespace: operatorv1.NamespaceOperator, Labels: clusterv1.LabelJoinToken}
	return words(ctx, hub, q, func(u *unstructured.Unstructured) string { return u.GetLabels()[clusterv1.LabelJoinToken] })
}

// Pending returns the clusters with a pending request, in one request.
func Pending(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	q := fleet.Query{Resource: fleet.SigningRequests, Labels: clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName}
	return words(ctx, hub, q, func(u *unstructured.Unstructured) string {
		if request.Answered(u) {
			return ""
		}
		return u.GetLabels()[clusterv1.LabelClusterName]
	})
}

// words lists objects and returns a word of each that has one, sorted and without duplicates.
func words(ctx context.Context, hub *fleet.Cluster, q fleet.Query, word func(*unstructured.Unstructured) string) ([]string, error) {
	items, err := fleet.ListAll(ctx, hub, q)
	var out []string
	for i := range items {
		if w := word(&items[i]); w != "" {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}
