// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// maxManagedNamespaces is how many namespaces one set may manage: each is an entry in the
// status of each of its clusters.
const maxManagedNamespaces = 100

// validateSet refuses mistakes that would otherwise only show when the set is used. What a
// stored set already contains is left alone.
func validateSet(_ context.Context, c change[clusterv1beta2.ManagedClusterSet]) error {
	if c.now.DeletionTimestamp != nil {
		return nil
	}
	if problems := validation.IsValidLabelValue(c.now.Name); c.creates && len(problems) > 0 {
		return badRequest("metadata.name: it cannot be the value of a cluster label: %s", strings.Join(problems, "; "))
	}
	selector := c.now.Spec.ClusterSelector.LabelSelector
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil && !reflect.DeepEqual(selector, c.old.Spec.ClusterSelector.LabelSelector) {
		return badRequest("spec.clusterSelector.labelSelector: %s", err)
	}
	return checkManagedNamespaces(c.now.Spec.ManagedNamespaces, c.old.Spec.ManagedNamespaces)
}

func checkManagedNamespaces(now, before []clusterv1.ManagedNamespaceConfig) error {
	if len(now) > maxManagedNamespaces && len(now) > len(before) {
		return badRequest("spec.managedNamespaces: %d namespaces, more than %d", len(now), maxManagedNamespaces)
	}
	known := map[string]bool{}
	for _, n := range before {
		known[n.Name] = true
	}
	for i, n := range now {
		if problem := systemNamespace(n.Name); problem != "" && !known[n.Name] {
			return badRequest("spec.managedNamespaces[%d].name: %s", i, problem)
		}
	}
	return nil
}

// systemNamespace returns why a set cannot manage a namespace; empty if it can. Agents refuse
// the same namespaces. The namespace default is allowed, since users work in it and it only
// gets labels.
func systemNamespace(name string) string {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Sprintf("%q is not the name of a namespace: %s", name, strings.Join(problems, "; "))
	}
	for _, prefix := range []string{"kube-", "openshift-", "open-cluster-management"} {
		if strings.HasPrefix(name, prefix) {
			return fmt.Sprintf("%q is a namespace of the system (%s*), which sets do not manage", name, prefix)
		}
	}
	return ""
}

// validateBinding requires a binding to have the name of its set, and its creator to have the
// right to bind the set.
func (s *Server) validateBinding(ctx context.Context, c change[clusterv1beta2.ManagedClusterSetBinding]) error {
	set := c.now.Spec.ClusterSet
	if c.now.Name != set {
		return badRequest("metadata.name: %q must be the same as spec.clusterSet %q", c.now.Name, set)
	}
	if !c.creates {
		return nil
	}
	return s.requireRight(ctx, c.UserInfo, setRight(set, clusterv1.SubresourceBind), "user %q is not allowed to bind cluster set %q", c.UserInfo.Username, set)
}
