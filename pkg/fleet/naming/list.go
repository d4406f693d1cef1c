// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
)

var nameOf = metav1.Object.GetName

// Accounts returns the names of the ManagedServiceAccounts of a cluster, or of all clusters if it is empty, in one
// request.
func Accounts(ctx context.Context, hub *fleet.Cluster, cluster string) ([]string, error) {
	return words(ctx, hub, fleet.Query{Resource: fleet.ManagedAccounts, Namespace: cluster}, nameOf)
}

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
	return words(ctx, hub, fleet.Query{Resource: fleet.ManifestWorks}, func(u metav1.Object) string { return u.GetNamespace() + "/" + u.GetName() })
}

// Tokens returns the ids of the join tokens, in one request.
func Tokens(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	q := fleet.Query{Resource: fleet.Secrets, Namespace: operatorv1.NamespaceOperator, Labels: clusterv1.LabelJoinToken}
	return words(ctx, hub, q, func(u metav1.Object) string { return u.GetLabels()[clusterv1.LabelJoinToken] })
}

// Pending returns the clusters with a pending request, in one request.
func Pending(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	items, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.SigningRequests, Labels: clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName})
	var out []string
	for i := range items {
		if !request.Answered(&items[i]) {
			out = append(out, items[i].GetLabels()[clusterv1.LabelClusterName])
		}
	}
	return sorted(out), err
}

// words lists the metadata of objects and returns a word of each that has one, sorted and without
// duplicates.
func words(ctx context.Context, hub *fleet.Cluster, q fleet.Query, word func(metav1.Object) string) ([]string, error) {
	items, err := fleet.ListMetadata(ctx, hub, q)
	var out []string
	for i := range items {
		out = append(out, word(&items[i]))
	}
	return sorted(out), err
}

// sorted returns the words in order, each once and none empty.
func sorted(words []string) []string {
	slices.Sort(words)
	words = slices.Compact(words)
	if len(words) > 0 && words[0] == "" {
		return words[1:]
	}
	return words
}
