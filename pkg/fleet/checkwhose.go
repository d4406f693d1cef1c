// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// hubDeployment reads the Deployment that runs a hub, nil where there is none.
func hubDeployment(ctx context.Context, c *Cluster) (*appsv1.Deployment, error) {
	d, err := typed.Get[appsv1.Deployment](ctx, c.Client, deployments, operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return d, explain("reading deployment "+operatorv1.NamespaceOperator+"/"+operatorv1.DefaultClusterManagerName, c, err)
}

// othersHub tells that the operator of somebody else runs a hub. It has fewer
// webhooks than ours, and hub init leaves it alone.
func othersHub(d *appsv1.Deployment) bool {
	return d != nil && d.Labels[operatorv1.LabelCreatedByClusterManager] == ""
}

// repair is what puts back what belongs to a hub: our program for our hub, and for
// another one its operator, which looks at everything when it starts.
func repair(c *Cluster, others bool) string {
	if others {
		return fmt.Sprintf("kubectl rollout restart -n %s deploy/%s%s", operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName, c.flag())
	}
	return "kubectl ocm hub init" + c.flag()
}

// foreignParts are what somebody else put into the Deployment of our hub, "" for
// nothing. Who may have changed a field that the installer set is told by who owns it:
// a Deployment that our installer did not write is not judged.
func foreignParts(d *appsv1.Deployment) string {
	var out []string
	for _, group := range []struct {
		what string
		list []string
	}{{"container", containerNames(d)}, {"init container", initNames(d)}} {
		for _, name := range group.list {
			if group.what != "container" || name != operatorv1.DefaultClusterManagerName {
				out = append(out, group.what+" "+name)
			}
		}
	}
	if fields, known := ownFields(d); known {
		if !strings.Contains(fields, `"f:replicas"`) && d.Spec.Replicas != nil {
			out = append(out, fmt.Sprintf("replicas: %d", *d.Spec.Replicas))
		}
		if !strings.Contains(fields, `"f:image"`) {
			out = append(out, "image "+imageOf(d))
		}
	}
	return strings.Join(out, ", ")
}

func containerNames(d *appsv1.Deployment) []string {
	var out []string
	for _, c := range d.Spec.Template.Spec.Containers {
		out = append(out, c.Name)
	}
	return out
}

func initNames(d *appsv1.Deployment) []string {
	var out []string
	for _, c := range d.Spec.Template.Spec.InitContainers {
		out = append(out, c.Name)
	}
	return out
}

// imageOf is what a Deployment runs: that of the container which is named after it,
// else of the first. Another one may have been put beside it, or before it.
func imageOf(d *appsv1.Deployment) string {
	i := max(0, slices.Index(containerNames(d), d.Name))
	if containers := d.Spec.Template.Spec.Containers; i < len(containers) {
		return containers[i].Image
	}
	return "-"
}

// ownFields are the fields of an object that our installer owns; false when it wrote
// none of it.
func ownFields(o metav1.Object) (string, bool) {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil {
			return entry.FieldsV1.GetRawString(), true
		}
	}
	return "", false
}

const (
	// hubLease is held by the process of our hub whose loops run.
	hubLease = "clustermanager-lock"
	// hubLeaseLimit is twice what the process lets it live without a renewal.
	hubLeaseLimit = 30 * time.Second
)

// idle says that no process of our hub has shown for a while that its loops run; ""
// when one has. The process need not be gone for that: it may hang.
func idle(ctx context.Context, c *Cluster, local time.Time) (string, error) {
	lease, err := c.Client.Resource(leases).Namespace(operatorv1.NamespaceOperator).Get(ctx, hubLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "no process of the hub has ever taken the lease " + hubLease, nil
	}
	if err != nil {
		return "", explain("reading lease "+operatorv1.NamespaceOperator+"/"+hubLease, c, err)
	}
	at := arrived(lease)
	if at == nil {
		return "the lease " + hubLease + " says no time", nil
	}
	if age := c.now(local).Sub(at.Time); age > hubLeaseLimit {
		return fmt.Sprintf("no process of the hub has renewed the lease %s for %s", hubLease, duration.HumanDuration(age)), nil
	}
	return "", nil
}
