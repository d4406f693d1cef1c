// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// maxManagedNamespaces is how many namespaces one set may manage: each is an entry in the
// status of each of its clusters.
const maxManagedNamespaces = 100

// validateSet refuses mistakes that would otherwise only show when the set is used. What a
// stored set already contains is left alone.
func (s *Server) validateSet(_ context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	set, old, err := objects[clusterv1beta2.ManagedClusterSet](r)
	if err != nil || set.DeletionTimestamp != nil {
		return nil, err
	}
	if old == nil {
		old = &clusterv1beta2.ManagedClusterSet{}
		if problems := validation.IsValidLabelValue(set.Name); len(problems) > 0 {
			return nil, apierrors.NewBadRequest("metadata.name: it cannot be the value of a cluster label: " + strings.Join(problems, "; "))
		}
	}
	if err := checkSelector(set, old); err != nil {
		return nil, err
	}
	return nil, checkManagedNamespaces(set, old)
}

func checkSelector(set, old *clusterv1beta2.ManagedClusterSet) error {
	selector := set.Spec.ClusterSelector.LabelSelector
	if reflect.DeepEqual(selector, old.Spec.ClusterSelector.LabelSelector) {
		return nil
	}
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		return apierrors.NewBadRequest("spec.clusterSelector.labelSelector: " + err.Error())
	}
	return nil
}

func checkManagedNamespaces(set, old *clusterv1beta2.ManagedClusterSet) error {
	now, before := set.Spec.ManagedNamespaces, old.Spec.ManagedNamespaces
	if reflect.DeepEqual(now, before) {
		return nil
	}
	if len(now) > maxManagedNamespaces && len(now) > len(before) {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.managedNamespaces: %d namespaces, more than %d", len(now), maxManagedNamespaces))
	}
	known := map[string]bool{}
	for _, n := range before {
		known[n.Name] = true
	}
	for i, n := range now {
		if known[n.Name] {
			continue
		}
		if problem := systemNamespace(n.Name); problem != "" {
			return apierrors.NewBadRequest(fmt.Sprintf("spec.managedNamespaces[%d].name: %s", i, problem))
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
