// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Deployment reads the Deployment that runs a hub; nil when there is none.
func Deployment(ctx context.Context, c *fleet.Cluster) (*appsv1.Deployment, error) {
	d, err := typed.Get[appsv1.Deployment](ctx, c.Client, fleet.Deployments, operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return d, fleet.Explain("reading deployment "+operatorv1.NamespaceOperator+"/"+operatorv1.DefaultClusterManagerName, c, err)
}

// OthersHub reports whether the operator of another distribution runs a hub. It has fewer
// webhooks than ours, and hub init leaves it alone.
func OthersHub(d *appsv1.Deployment) bool {
	return d != nil && d.Labels[operatorv1.LabelCreatedByClusterManager] == ""
}

// ForeignParts returns what others have added to the Deployment of our hub; "" for nothing. It
// decides by field ownership: a Deployment that our installer did not write is not checked.
func ForeignParts(d *appsv1.Deployment) string {
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
			out = append(out, "image "+ImageOf(d))
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

// ImageOf returns the image of a Deployment: that of the container which has the Deployment's
// name, else of the first. Another container may have been injected beside it, or before it.
func ImageOf(d *appsv1.Deployment) string {
	i := max(0, slices.Index(containerNames(d), d.Name))
	if containers := d.Spec.Template.Spec.Containers; i < len(containers) {
		return containers[i].Image
	}
	return "-"
}

// ownFields returns the fields of an object that our installer owns; false when it owns none.
func ownFields(o metav1.Object) (string, bool) {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == fleet.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil {
			return entry.FieldsV1.GetRawString(), true
		}
	}
	return "", false
}

// TagOf returns the tag of an image reference, "-" without one.
func TagOf(reference string) string {
	_, tag := image.Split(reference)
	return cmp.Or(tag, "-")
}
