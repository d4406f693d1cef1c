// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Lists of a pod's containers. Server-side apply leaves to others the entries that
// they have put there.
var containerLists = []string{"containers", "initContainers"}

// foreign are the containers of a Deployment that are not among those wanted.
func foreign(live, wanted *unstructured.Unstructured) []string {
	var out []string
	for _, list := range containerLists {
		ours := namesOf(wanted, list)
		for _, name := range namesOf(live, list) {
			if !slices.Contains(ours, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func namesOf(u *unstructured.Unstructured, list string) []string {
	items, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", list)
	var out []string
	for _, item := range items {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		out = append(out, name)
	}
	return out
}

// cleared is a Deployment as it has to be before ours is applied: without containers
// that we do not run. They would have the ServiceAccount of the hub or the agent.
func (r *run) cleared(ctx context.Context, c *Cluster, live, wanted *unstructured.Unstructured) error {
	clean := live.DeepCopy()
	for _, list := range containerLists {
		ours := namesOf(wanted, list)
		items, found, _ := unstructured.NestedSlice(clean.Object, "spec", "template", "spec", list)
		if !found {
			continue
		}
		items = slices.DeleteFunc(items, func(item any) bool {
			m, _ := item.(map[string]any)
			name, _ := m["name"].(string)
			return !slices.Contains(ours, name)
		})
		if len(items) == 0 && list == "containers" {
			items, _, _ = unstructured.NestedSlice(wanted.Object, "spec", "template", "spec", list)
		}
		if err := unstructured.SetNestedSlice(clean.Object, items, "spec", "template", "spec", list); err != nil {
			return err
		}
	}
	_, err := c.Client.Resource(deployments).Namespace(live.GetNamespace()).Update(ctx, clean, metav1.UpdateOptions{FieldManager: FieldManager})
	return err
}

// strays says what in the hub's Deployment is not as hub init makes it; "" when all is.
func strays(d *appsv1.Deployment) string {
	var out []string
	for _, list := range [][]corev1.Container{d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers} {
		for i := range list {
			if list[i].Name != operatorv1.DefaultClusterManagerName {
				out = append(out, fmt.Sprintf("container %s (%s)", list[i].Name, list[i].Image))
			}
		}
	}
	for _, f := range d.ManagedFields {
		if f.Manager == FieldManager || f.Subresource == "status" || f.FieldsV1 == nil {
			continue
		}
		for field, what := range map[string]string{`"f:replicas":`: "replicas", `"f:image":`: "image"} {
			if strings.Contains(string(f.FieldsV1.Raw), field) {
				out = append(out, fmt.Sprintf("%s set by %s", what, f.Manager))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// foreign tells what others have put into the hub's own Deployment.
func (c *checking) foreign(ctx context.Context) ([]Finding, error) {
	d, err := typed.Get[appsv1.Deployment](ctx, c.o.Hub.Client, deployments, operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, explain("reading the hub's deployment", c.o.Hub, err)
	case d.Labels[operatorv1.LabelCreatedByClusterManager] == "":
		return nil, nil // somebody else's hub
	}
	if found := strays(d); found != "" {
		return []Finding{{
			Severity: SeverityWarning, Title: "deployment/" + d.Name + " of the hub was changed by others", Cause: found,
			Fix: "kubectl ocm hub init" + c.o.Hub.flag(),
		}}, nil
	}
	return nil, nil
}
