// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var hubProfiles = multiclusterv1alpha1.GroupVersion.WithResource("clusterprofiles")

// profilesPage is the page size of the list of profiles.
const profilesPage = 500

// Profiles deletes the ClusterProfiles that the hub made: those with the hub's manager label,
// the name of their cluster, and the hub's name in the spec, which is immutable. Other
// ClusterProfiles and the API stay. It is used when the gate is off or the hub is removed;
// where the API is not served it does nothing.
func Profiles(ctx context.Context, client dynamic.Interface) error {
	o := metav1.ListOptions{
		LabelSelector: multiclusterv1alpha1.LabelClusterManager + "=" + multiclusterv1alpha1.ManagerName, Limit: profilesPage,
	}
	var errs []error
	for {
		page, err := client.Resource(hubProfiles).List(ctx, o)
		if apierrors.IsNotFound(err) {
			return errors.Join(errs...)
		}
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("listing clusterprofiles: %w", err))...)
		}
		for i := range page.Items {
			p := &page.Items[i]
			manager, _, _ := unstructured.NestedString(p.Object, "spec", "clusterManager", "name")
			if manager != multiclusterv1alpha1.ManagerName || p.GetLabels()[clusterv1.LabelClusterName] != p.GetName() {
				continue
			}
			errs = append(errs, reconcile.Delete(ctx, client, reconcile.Target{
				Resource: hubProfiles, Namespace: p.GetNamespace(), Name: p.GetName(), UID: p.GetUID(),
			}))
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return errors.Join(errs...)
		}
	}
}
