// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
)

// SelectorType returns how the members of a set are found.
func SelectorType(set *unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(set.Object, "spec", "clusterSelector", "selectorType")
	if kind == "" {
		kind = string(clusterv1beta2.SelectorTypeExclusiveClusterSetLabel)
	}
	return kind
}

// Exclusive reports whether members of the set carry its name in their label.
func Exclusive(set *unstructured.Unstructured) bool {
	return SelectorType(set) == string(clusterv1beta2.SelectorTypeExclusiveClusterSetLabel)
}

// MembersOf returns the label selector of the members of a set.
func MembersOf(set *unstructured.Unstructured) (string, error) {
	if Exclusive(set) {
		return clusterv1.LabelClusterSet + "=" + set.GetName(), nil
	}
	raw, _, _ := unstructured.NestedMap(set.Object, "spec", "clusterSelector", "labelSelector")
	return selectorText(raw)
}

// ReadSet reads a set; it is an error when it does not exist.
func ReadSet(ctx context.Context, hub *fleet.Cluster, name string) (*unstructured.Unstructured, error) {
	u, err := hub.Client.Resource(fleet.ManagedClusterSets).Get(ctx, name, fleet.GetOptions)
	switch {
	case apierrors.IsNotFound(err) && fleet.IsNoKind(err):
		return nil, fleet.NotHub(hub, "it does not serve "+fleet.ManagedClusterSets.GroupResource().String())
	case apierrors.IsNotFound(err):
		return nil, naming.NoSet(name, hub)
	}
	return u, fleet.Explain("reading managedclusterset "+name, hub, err)
}
